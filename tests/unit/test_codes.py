"""Packed codes."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from foh_pg.arrays import codes

tables = hnp.arrays(bool, st.tuples(st.integers(0, 12), st.integers(1, 140)))


@given(tables)
def test_unpack_reverses_pack(bits):
    assert np.array_equal(codes.unpack(codes.pack(bits), bits.shape[1]), bits)


@given(tables)
def test_unused_bits_are_zero(bits):
    packed = codes.pack(bits)
    assert packed.shape == (len(bits), codes.width(bits.shape[1]))
    assert not np.unpackbits(packed, axis=1)[:, bits.shape[1] :].any()


@given(hnp.arrays(bool, st.tuples(st.just(1), st.integers(1, 100))))
def test_bytes_are_those_of_a_postgresql_bit_string(bits):
    """`bit_send` writes the length in bits and then the bytes, first bit highest, padded with zeros."""
    text = "".join("1" if bit else "0" for bit in bits[0])
    padded = text.ljust(8 * -(-len(text) // 8), "0")
    sent = struct.pack("!i", len(text)) + int(padded, 2).to_bytes(len(padded) // 8, "big")
    assert struct.pack("!i", bits.shape[1]) + codes.pack(bits).tobytes() == sent


@given(st.integers(1, 200), st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_hamming_counts_different_bits(k, n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((n, k)) < 0.5, rng.random((m, k)) < 0.5
    expected = (a[:, None, :] != b[None, :, :]).sum(axis=2).reshape(n, m)
    assert np.array_equal(codes.hamming(codes.pack(a), codes.pack(b)), expected)
    blocks = list(codes.hamming_blocks(codes.pack(a), codes.pack(b), pairs=3))
    assert np.array_equal(np.concatenate([np.zeros((0, m)), *(block for _, block in blocks)]), expected)
    if n == m:
        assert np.array_equal(codes.hamming_rows(codes.pack(a), codes.pack(b)), np.diag(expected))


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_nearest_is_a_stable_sort(n, k, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, 5)) < 0.5, rng.random((4, 5)) < 0.5
    rows, distances = codes.nearest(codes.pack(queries), codes.pack(base), k)
    full = (queries[:, None] != base[None]).sum(axis=2)
    order = np.argsort(full, axis=1, kind="stable")[:, :k]
    assert np.array_equal(rows, order)
    assert np.array_equal(distances, np.take_along_axis(full, order, axis=1))


def test_long_codes_and_distances_beyond_a_byte():
    a, b = codes.pack(np.zeros((1, 1000))), codes.pack(np.ones((1, 1000)))
    assert codes.hamming(a, b)[0, 0] == 1000
