import { expect, it } from 'vitest'
import { isTraceparent, parseTraceparent } from '../src/traceparent.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

it('reads trace, span and flags', () => {
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
    traceId: TRACE,
    spanId: SPAN,
    flags: 1,
  })
})

it('reads a later version and ignores its other fields, but does not store it', () => {
  const later = `cc-${TRACE}-${SPAN}-03-what-comes-later`
  expect(parseTraceparent(later)).toEqual({ traceId: TRACE, spanId: SPAN, flags: 3 })
  expect(isTraceparent(later)).toBe(false)
})

it.each([
  undefined,
  7,
  [`00-${TRACE}-${SPAN}-01`],
  '',
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
])('rejects %s', (value) => {
  expect(parseTraceparent(value)).toBeUndefined()
  expect(isTraceparent(value)).toBe(false)
})
