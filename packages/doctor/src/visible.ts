/** Escapes control characters: names come from brokers, and an escape sequence must not reach a terminal. */
export const visible = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`,
  )
