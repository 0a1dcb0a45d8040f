import { expect, test } from 'vitest'
import { framesOf } from '../src/classify/stack.ts'

test.each([
  ['an error', { message: 'no', stack: 'Error: no\n    at f (a.js:1:1)' }, '    at f (a.js:1:1)'],
  ['a message with lines', { message: 'a\nb', stack: 'Error: a\nb\n    at f' }, '    at f'],
  // The message is also the name of a function.
  [
    'a short message',
    { message: 'run', stack: 'Error\n    at run\n    at b' },
    '    at run\n    at b',
  ],
  [
    'a short message, of Python',
    { message: 'run', stack: 'Error\n  File "run.py", line 1' },
    '  File "run.py", line 1',
  ],
  ['a value without a message', { stack: 'Error\n    at f' }, '    at f'],
  ['a stack without frames', { message: 'no', stack: 'Error: no' }, undefined],
  ['a stack without the message', { message: 'later', stack: 'Error: no\nthen' }, 'then'],
  ['a value without a stack', { message: 'no' }, undefined],
])('the frames of %s', (_, error, expected) => {
  expect(framesOf(error)).toBe(expected)
})

test('the frames have at most 2,048 characters', () => {
  expect(framesOf({ message: 'no', stack: `Error: no\n${'x'.repeat(3_000)}` })).toHaveLength(2_048)
})
