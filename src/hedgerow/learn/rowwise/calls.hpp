// What Python calls, one function for each kernel; included by rows.cpp. Arrays that are written come last.

FUNCTION(py_panel_size, 0, 0, 2) {  // k, n
    (void)call;
    return PyLong_FromSize_t(path.panel_size(n[0], n[1]));
}

FUNCTION(py_pack, 2, 1, 3) {  // b, panels | k, n, transposed
    const bool turned = n[2] != 0;
    return run(call[0].has<float>(n[0] * n[1]) && call[1].has<float>(path.panel_size(n[0], n[1])), [&] {
        path.pack(call[0].of<const float>(), n[0], n[1], turned ? 1 : (ptrdiff_t)n[1], turned ? (ptrdiff_t)n[0] : 1, call[1].of<float>());
    });
}

FUNCTION(py_multiply, 4, 1, 4) {  // a, panels, start, out | m, k, n, relu
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<float>(path.panel_size(n[1], n[2])) &&
                      (!call[2].held || call[2].has<float>(n[2])) && call[3].has<float>(n[0] * n[2]);
    return run(fits, [&] {
        path.multiply(call[0].of<const float>(), n[0], n[1], call[1].of<const float>(), n[2], call[2].of<const float>(), n[3] != 0,
                      call[3].of<float>());
    });
}

FUNCTION(py_gathered, 6, 1, 6) {  // x, where, terms, panels, start, out | m, d, places, k, n, relu
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<int64_t>(n[2]) && call[2].has<int64_t>(n[3]) &&
                      call[3].has<float>(path.panel_size(n[3], n[4])) && (!call[4].held || call[4].has<float>(n[4])) &&
                      call[5].has<float>(volume(n[0], n[2], n[4])) && inside(call[1], n[2], call[2], n[3], n[1]);
    return run(fits, [&] {
        path.gathered(call[0].of<const float>(), n[0], n[1], call[1].of<const int64_t>(), n[2], call[2].of<const int64_t>(), n[3],
                      call[3].of<const float>(), n[4], call[4].of<const float>(), n[5] != 0, call[5].of<float>());
    });
}

FUNCTION(py_outer_gathered, 5, 1, 5) {  // x, where, terms, g, out | m, d, places, k, n
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<int64_t>(n[2]) && call[2].has<int64_t>(n[3]) &&
                      call[3].has<float>(volume(n[0], n[2], n[4])) && call[4].has<float>(volume(n[0], n[3], n[4])) &&
                      inside(call[1], n[2], call[2], n[3], n[1]);
    return run(fits, [&] {
        path.outer_gathered(call[0].of<const float>(), n[0], n[1], call[1].of<const int64_t>(), n[2], call[2].of<const int64_t>(), n[3],
                            call[3].of<const float>(), n[4], call[4].of<float>());
    });
}

FUNCTION(py_add_outer, 3, 1, 3) {  // u, a, total | m, k, l
    const bool fits = call[0].has<int16_t>(n[0] * n[1]) && call[1].has<int16_t>(n[0] * n[2]) && call[2].has<int64_t>(n[1] * n[2]);
    return run(fits, [&] { path.add_outer(call[0].of<const int16_t>(), call[1].of<const int16_t>(), n[0], n[1], n[2], call[2].of<int64_t>()); });
}

FUNCTION(py_squares, 2, 1, 2) {  // rows, out | m, n
    return run(call[0].has<float>(n[0] * n[1]) && call[1].has<double>(n[0]),
               [&] { path.squares(call[0].of<const float>(), n[0], n[1], call[1].of<double>()); });
}

FUNCTION(py_summed, 2, 1, 3) {  // values, out | m, places, n
    return run(call[0].has<float>(volume(n[0], n[1], n[2])) && call[1].has<float>(n[0] * n[2]),
               [&] { path.summed(call[0].of<const float>(), n[0], n[1], n[2], call[1].of<float>()); });
}

FUNCTION(py_whole, 4, 3, 3) {  // a, A, scale, length | m, n, one
    const size_t wide = n[1] + (n[2] != 0);
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<int16_t>(n[0] * wide) && call[2].has<double>(n[0]) && call[3].has<int64_t>(n[0]);
    return run(fits, [&] {
        path.whole(call[0].of<const float>(), n[0], n[1], n[2] != 0, call[1].of<int16_t>(), call[2].of<double>(), call[3].of<int64_t>());
    });
}

FUNCTION(py_lengths, 4, 1, 2) {  // g, scale, length, out | m, n
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<double>(n[0]) && call[2].has<int64_t>(n[0]) && call[3].has<double>(n[0]);
    return run(fits, [&] {
        path.lengths(call[0].of<const float>(), n[0], n[1], call[1].of<const double>(), call[2].of<const int64_t>(), call[3].of<double>());
    });
}

FUNCTION(py_shorten, 7, 2, 2) {  // g, factor, scale, length, cut, U, used | m, n, and the step
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<double>(n[0]) && call[2].has<double>(n[0]) && call[3].has<int64_t>(n[0]) &&
                      (!call[4].held || call[4].has<uint8_t>(n[0])) && call[5].has<int16_t>(n[0] * n[1]) && call[6].has<int64_t>(n[0]);
    return run(fits, [&] {
        path.shorten(call[0].of<const float>(), n[0], n[1], call[1].of<const double>(), call[2].of<const double>(), call[3].of<const int64_t>(),
                     call.number, call[4].of<const uint8_t>(), call[5].of<int16_t>(), call[6].of<int64_t>());
    });
}

FUNCTION(py_steps, 4, 2, 2) {  // g, factor, V, used | m, d, and the step
    const bool fits = call[0].has<float>(n[0] * n[1]) && call[1].has<double>(n[0]) && call[2].has<int32_t>(n[0] * n[1]) && call[3].has<int64_t>(n[0]);
    return run(fits, [&] {
        path.steps(call[0].of<const float>(), n[0], n[1], call[1].of<const double>(), call.number, call[2].of<int32_t>(), call[3].of<int64_t>());
    });
}

FUNCTION(py_add_steps, 2, 1, 2) {  // V, total | m, d
    return run(call[0].has<int32_t>(n[0] * n[1]) && call[1].has<int64_t>(n[1]),
               [&] { path.add_steps(call[0].of<const int32_t>(), n[0], n[1], call[1].of<int64_t>()); });
}

FUNCTION(py_exp64, 2, 1, 1) {  // x, out | n
    return run(call[0].has<double>(n[0]) && call[1].has<double>(n[0]), [&] { path.exp64(call[0].of<const double>(), n[0], call[1].of<double>()); });
}

FUNCTION(py_elementwise, 3, 1, 2) {  // x, h, out | which, n
    const bool two = n[0] >= 5, fits = n[0] <= 10 && call[0].has<float>(n[1]) && (!two || call[1].has<float>(n[1])) && call[2].has<float>(n[1]);
    return run(fits, [&] { path.elementwise((int)n[0], call[0].of<const float>(), call[1].of<const float>(), n[1], call[2].of<float>()); });
}

FUNCTION(py_softmax_slopes, 3, 1, 2) {  // z, y, out | m, n
    return run(call[0].has<float>(n[0] * n[1]) && call[1].has<int64_t>(n[0]) && call[2].has<float>(n[0] * n[1]),
               [&] { path.softmax_slopes(call[0].of<const float>(), call[1].of<const int64_t>(), n[0], n[1], call[2].of<float>()); });
}

FUNCTION(py_max_pool, 4, 2, 5) {  // x, windows, out, chosen | m, places, c, windows, size
    const size_t all = volume(n[0], n[3], n[2]);
    const bool fits = call[0].has<float>(volume(n[0], n[1], n[2])) && call[1].has<int64_t>(n[3] * n[4]) && call[2].has<float>(all) &&
                      call[3].has<int32_t>(all) && within(call[1], n[3] * n[4], (int64_t)n[1]);
    return run(fits, [&] {
        path.max_pool(call[0].of<const float>(), n[0], n[1], n[2], call[1].of<const int64_t>(), n[3], n[4], call[2].of<float>(), call[3].of<int32_t>());
    });
}

FUNCTION(py_max_pool_slopes, 3, 1, 4) {  // g, chosen, out | m, windows, places, c
    const size_t all = volume(n[0], n[1], n[3]);
    bool fits = call[0].has<float>(all) && call[1].has<int32_t>(all) && call[2].has<float>(volume(n[0], n[2], n[3]));
    const auto* chosen = call[1].of<const int32_t>();
    fits = fits && std::all_of(chosen, chosen + all, [&](int32_t place) { return place >= -1 && place < (int64_t)n[2]; });
    return run(fits, [&] { path.max_pool_slopes(call[0].of<const float>(), chosen, n[0], n[1], n[2], n[3], call[2].of<float>()); });
}
