"""Algorithm 4 of the thesis, number by number; why it is a toy; and the mended one."""

from __future__ import annotations

import pytest
from psi_driver import aligned, common_ids

from hedgerow.crypto import integers
from hedgerow.crypto.integers import jacobi, probably_prime
from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi import Agrawal
from hedgerow.crypto.psi import agrawal as room
from hedgerow.crypto.psi.agrawal import GROUP_14, TOY_KEYS, TOY_PRIME, Squares
from hedgerow.errors import MessageRefused, SettingsInvalid

ALICE = ["12345678A", "87654321B", "54321678C", "67891234D"]
BOB = ["67891234D", "22222222Y", "54321678C", "11111111X"]


def test_v10_all_24_printed_numbers_and_the_result():
    run = Agrawal.toy(ALICE, BOB)
    assert run.x_a == [6801962795022291115, 14914775733042932484, 6031741069150041195, 7775431530089967261]
    assert run.x_b == [7775431530089967261, 15704629945399610882, 6031741069150041195, 8717288097697391268]
    assert run.y_a == [4037654302475096183, 7215131381927850152, 7524770399191986516, 4530009952158919715]
    assert run.y_b == [709144700394714309, 1186382732300108902, 683568481448076414, 3441729271243177027]
    assert run.z_a == [5211193962823641457, 7666888661095677275, 4407230382765344063, 3478216981347847458]
    assert run.z_b == [3478216981347847458, 7666888661095677275, 8512757503240690236, 6052532624285366477]
    assert set(run.common_a) == set(run.common_b) == {"67891234D", "54321678C"}


def test_v10_the_printed_numbers_are_a_toy():
    run = Agrawal.toy(ALICE, BOB)
    xs = {*run.x_a, *run.x_b}
    assert len(xs) == 6
    assert all(jacobi(x % TOY_PRIME, TOY_PRIME) == -1 for x in xs)
    assert sum(x >= TOY_PRIME for x in xs) == 2
    assert [key % 2 for key in TOY_KEYS] == [0, 1]
    # the Legendre symbol tells who made a number, and x and p - x become one under Alice's key
    assert {jacobi(y, TOY_PRIME) for y in run.y_a} == {1}
    assert {jacobi(y, TOY_PRIME) for y in run.y_b} == {-1}
    assert pow(5, TOY_KEYS[0], TOY_PRIME) == pow(TOY_PRIME - 5, TOY_KEYS[0], TOY_PRIME)


def test_group_14_is_a_safe_prime():
    assert GROUP_14.bit_length() == 2048
    assert GROUP_14 % 8 == 7  # so 2 is a square
    assert probably_prime(GROUP_14)
    assert probably_prime(GROUP_14 // 2)


def numbers(raw):
    return [int.from_bytes(raw[i : i + 256], "big") for i in range(0, len(raw), 256)]


def test_the_mended_one_hashes_into_the_squares_and_stays_there():
    group = Squares()
    hashed = group.elements_of([b"%d" % i for i in range(20)], b"salt")
    once = group.fresh(lambda n: b"\5" * n).mask(hashed)
    assert {jacobi(y, GROUP_14) for y in numbers(hashed) + numbers(once)} == {1}
    assert len(set(numbers(hashed))) == 20
    assert hashed != group.elements_of([b"%d" % i for i in range(20)], b"other")


def test_masks_commute():
    group = Squares()
    one, other, x = group.fresh(lambda n: b"\5" * n), group.fresh(lambda n: b"\7" * n), group.elements_of([b"a"], b"")
    assert one.mask(other.mask(x)) == other.mask(one.mask(x)) != x


@pytest.mark.parametrize("y", [0, 1, GROUP_14 - 1, GROUP_14, GROUP_14 + 4, 2**2048 - 1, GROUP_14 - 4])
@pytest.mark.parametrize("way", ["gmpy2", "python"])
def test_what_is_no_square_is_refused(y, way, monkeypatch):
    if way == "python":
        monkeypatch.setattr(room, "library", lambda: None)
    Squares().check((4).to_bytes(256, "big"))
    with pytest.raises(MessageRefused):
        Squares().check((4).to_bytes(256, "big") + y.to_bytes(256, "big"))


def test_the_mended_one_finds_what_is_common():
    lists = {"alice": [id.encode() for id in ALICE], "bob": [id.encode() for id in BOB]}
    common = common_ids(lists, aligned(lists, group=Squares()))
    assert set(common["alice"]) == {b"67891234D", b"54321678C"}
    assert common["alice"] == common["bob"]


def test_the_mended_one_by_its_settings():
    by = Agrawal(least=3, small_domain="accepted")
    lists = {"alice": by.read(range(5)), "bob": by.read(range(2, 7))}
    got = meet({name: by.peer(name, ("alice", "bob"), ids) for name, ids in lists.items()})
    assert set(got["alice"].rows) == {2, 3, 4}
    assert by.name == "agrawal"
    with pytest.raises(SettingsInvalid):
        Agrawal(least=1)
    assert integers.library is room.library
