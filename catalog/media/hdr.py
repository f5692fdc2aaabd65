"""HDR pictures made fit for eyes and models that expect SDR, by one simple rule.

The signal becomes light in cd/m2 (PQ: SMPTE ST 2084; HLG: ITU-R BT.2100, for a display of 1,000 cd/m2),
BT.2020 primaries become BT.709 (ITU-R BT.2087), and HDR reference white, 203 cd/m2 (ITU-R BT.2408), becomes
SDR white. Up to 80 % of it all light stays as it is; above, a shoulder that never reaches full white takes in
the rest. The brightest of the three channels is what goes through that curve, so that hues stay.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

PQ: Final = 16
HLG: Final = 18
TRANSFERS: Final = frozenset({PQ, HLG})
"""Transfer characteristics that are HDR, by their codes in ITU-T H.273."""
BT2020: Final = 9

_WHITE: Final = 203.0
_PEAK: Final = 1000.0
_KNEE: Final = 0.8
_TO_BT709: Final = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32
)
_LUMA_2020: Final = np.array([0.2627, 0.6780, 0.0593], np.float32)

Light = npt.NDArray[np.float32]


def to_sdr(image: npt.NDArray[np.uint16], transfer: int, primaries: int) -> npt.NDArray[np.uint8]:
    """``(height, width, 3)`` uint16 RGB of a PQ or HLG signal, full range, as 8-bit SDR RGB of that shape.

    Raises:
        ValueError: ``transfer`` is neither PQ nor HLG.
    """
    signal: Light = np.asarray(image / np.float32(65535), np.float32)
    if transfer == PQ:
        light = _pq(signal)
    elif transfer == HLG:
        light = _hlg(signal)
    else:
        raise ValueError(f"transfer must be {PQ} (PQ) or {HLG} (HLG), got {transfer}")
    light /= _WHITE
    if primaries == BT2020:
        light = light @ _TO_BT709.T
    light = np.maximum(light, 0)
    brightest = light.max(axis=2, keepdims=True)
    light *= _shoulder(brightest) / np.maximum(brightest, 1e-6)
    sdr: npt.NDArray[np.uint8] = np.round(_srgb(np.clip(light, 0, 1)) * 255).astype(np.uint8)
    return sdr


def _pq(signal: Light) -> Light:
    """cd/m2 of a PQ signal (SMPTE ST 2084, equation 4.1)."""
    m1, m2 = 2610 / 16384, 2523 / 4096 * 128
    c1, c2, c3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
    power = signal ** np.float32(1 / m2)
    light: Light = 10000 * (np.maximum(power - c1, 0) / (c2 - c3 * power)) ** np.float32(1 / m1)
    return light


def _hlg(signal: Light) -> Light:
    """cd/m2 of an HLG signal on a display of 1,000 cd/m2 (ITU-R BT.2100, table 5, gamma 1.2)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - c) / a) + b) / 12)
    luma = np.maximum(scene @ _LUMA_2020, 1e-6)[:, :, None]
    light: Any = _PEAK * luma**0.2 * scene
    return np.asarray(light, np.float32)


def _shoulder(light: Light) -> Light:
    above = np.maximum(light - _KNEE, 0)
    room = 1 - _KNEE
    return np.where(light <= _KNEE, light, _KNEE + room * above / (above + room))


def _srgb(light: Light) -> Light:
    """The signal for linear light (IEC 61966-2-1)."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** np.float32(1 / 2.4) - 0.055)
