import { expect, test } from 'vitest'
import { ownFrame } from '../src/frame.ts'

test.each([
  ['  File "/app/orders.py", line 42, in charge', 'charge orders.py'],
  ['in the File "/app/orders.py", line 42, in charge', undefined],
  ['  File "<frozen importlib._bootstrap>", line 241, in _call', undefined],
  ['  File "vendor/lib.py", line 3, in read', undefined],
  ['  File "/app/vendored/lib.py", line 3, in read', 'read lib.py'],
  [
    String.raw`#12 /app/src/Export.php(42): Acme\Export->orders()`,
    String.raw`Acme\Export->orders Export.php`,
  ],
  ['see #1 /app/src/Export.php(42): orders()', undefined],
  ["      from /app/lib/export.rb:42:in 'Export#orders'", 'Export#orders export.rb'],
  ["/app/lib/export.rb:42:in `orders'", 'orders export.rb'],
  ["seen at /app/lib/export.rb:42:in 'orders'", undefined],
  ['', undefined],
])('%j is the frame %j', (stack, expected) => {
  expect(ownFrame(stack)).toBe(expected)
})

test('the last line of Python and the first line of other languages are the own frame', () => {
  const python = ['  File "/app/a.py", line 1, in outer', '  File "/app/b.py", line 2, in inner']
  expect(ownFrame(python.join('\n'))).toBe('inner b.py')
  const node = ['    at inner (/app/b.js:1:1)', '    at outer (/app/a.js:2:2)']
  expect(ownFrame(node.join('\n'))).toBe('inner b.js')
})
