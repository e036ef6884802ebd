"""The signature of a row's labels: label number n sets bit ``n % 64``."""

SIGNATURE_BITS = 64
SIGNATURE_BYTES = SIGNATURE_BITS // 8
