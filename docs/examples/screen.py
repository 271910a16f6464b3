import hedgerow as hr

hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(4), seed=0)
columns = ["mean_radius", "mean_smoothness", "mean_symmetry", "texture_error"]
found = hr.stats.screen(hospitals, "malignant ~ mean_texture", columns)
print(found.to_frame().map(lambda value: f"{value:.3g}").to_string())
