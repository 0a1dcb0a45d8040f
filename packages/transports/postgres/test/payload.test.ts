import { describe, expect, test } from 'vitest'
import { decodePayload } from '../src/payload.ts'

describe('a selected payload', () => {
  test.each([
    ['text', '{"a":1}', '{"a":1}'],
    ['no bytes', '', ''],
    ['hexadecimal digits', String.raw`\x00ff5c`, '\0\xff\\'],
    ['backslashes', String.raw`C:\\new\\x41`, String.raw`C:\new\x41`],
    ['a backslash before an x', String.raw`\\x41`, String.raw`\x41`],
    ['other bytes', String.raw`a\000\377\\\303\251`, 'a\0\xff\\\xc3\xa9'],
    ['digits after a byte', String.raw`\0017`, '\x017'],
  ])('with %s is decoded to its bytes', (_, text, bytes) => {
    expect(decodePayload(text).toString('latin1')).toBe(bytes)
  })
})
