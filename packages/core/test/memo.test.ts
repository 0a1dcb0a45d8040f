import { expect, test } from 'vitest'
import { remembering } from '../src/memo.ts'

/** A function that records the texts for which it was computed. */
function counted() {
  const computed: string[] = []
  const length = remembering((text) => {
    computed.push(text)
    return text.length
  })
  return { length, computed }
}

test('a result is computed once', () => {
  const { length, computed } = counted()
  expect([length('a'), length('bb'), length('a'), length('bb')]).toEqual([1, 2, 1, 2])
  expect(computed).toEqual(['a', 'bb'])
})

test.each([
  [1_000, 1],
  [1_001, 2],
])('the result for %i characters is computed %i times for two calls', (size, times) => {
  const { length, computed } = counted()
  const text = 'a'.repeat(size)
  expect([length(text), length(text)]).toEqual([size, size])
  expect(computed).toHaveLength(times)
})

test('a hundred results are remembered; the next one replaces them', () => {
  const { length, computed } = counted()
  const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`)
  for (const text of [...texts, ...texts]) length(text)
  expect(computed).toEqual(texts)
  length('another')
  length('text 0')
  length('another')
  expect(computed).toEqual([...texts, 'another', 'text 0'])
})
