/**
 * FNV-1a, 64 bits, over the text as UTF-16LE bytes, then a finaliser. It is simple and published, so
 * other languages can compute a signature too. A string already is UTF-16, so nothing must be encoded
 * and lone surrogates need no rule. FNV alone puts the last characters into few of the bits, and users
 * do partition by or shorten to a few digits; the finaliser avoids that. It does not resist an attacker
 * who searches for collisions.
 * http://www.isthe.com/chongo/tech/comp/fnv/
 *
 * The state is two 32-bit halves: BigInt would be about fifty times slower.
 */
const OFFSET_HIGH = 0xcbf29ce4
const OFFSET_LOW = 0x84222325

/** The prime is 2^40 + 0x1b3: multiply by the small part, and add the low half shifted by 40. */
const PRIME = 0x1b3

/** Returns 16 lowercase hex digits. */
export function hash64(text: string): string {
  let high = OFFSET_HIGH | 0
  let low = OFFSET_LOW | 0
  for (let at = 0; at < text.length * 2; at += 1) {
    const unit = text.charCodeAt(at >> 1)
    low ^= at % 2 === 0 ? unit & 0xff : unit >> 8
    high = (Math.imul(high, PRIME) + (low << 8) + carryOf(low)) | 0
    low = Math.imul(low, PRIME)
  }
  // Each step is reversible, so two states never become one.
  low ^= mix(high)
  high ^= mix(low)
  return hex(high >>> 16) + hex(high & 0xffff) + hex(low >>> 16) + hex(low & 0xffff)
}

/** The finaliser of MurmurHash3: every input bit affects every output bit. */
function mix(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return twice ^ (twice >>> 16)
}

/** Returns the part of `low * PRIME` above 32 bits, from its halves, so that all values stay integers. */
function carryOf(low: number): number {
  return ((low >>> 16) * PRIME + (((low & 0xffff) * PRIME) >>> 16)) >>> 16
}

/** Writes four digits at a time: above 31 bits V8 uses slow floating point. */
function hex(word: number): string {
  return word.toString(16).padStart(4, '0')
}
