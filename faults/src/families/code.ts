import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown } from './family.ts'

function parsed(draw: Draw, message: string): Sample {
  const error = Object.assign(new SyntaxError(message), {
    stack: `SyntaxError: ${message}\n    at JSON.parse (<anonymous>)\n    at read (/app/src/read.ts:${draw.int(1, 99)}:9)`,
  })
  return { thrown: error }
}

/** Returns a position as Node 20 formats it, or as later versions do. */
function place(draw: Draw): string {
  const at = draw.int(1, 9_000)
  return draw.pick([
    `position ${at}`,
    `position ${at} (line ${draw.int(1, 99)} column ${draw.int(1, 80)})`,
  ])
}

interface Issue {
  readonly message: string
  readonly path: readonly (string | number)[]
}

function invalid(draw: Draw, issues: readonly Issue[]): Sample {
  const message = JSON.stringify(issues)
  return thrown(draw, {
    type: 'ZodError',
    message,
    fields: { issues },
    own: ['check', 'schema.ts'],
  })
}

const inLines = (draw: Draw, field: string, message: string) =>
  draw.several(1, 5, () => ({ message, path: ['items', draw.int(0, 60), field] }))

function undefinedRead(draw: Draw, property: string): Sample {
  const message = `Cannot read properties of undefined (reading '${property}')`
  return thrown(draw, { type: 'TypeError', message, own: ['priceOf', 'pricing.ts'] })
}

/** One bundle for all: a chunk with a content hash in its name. */
function bundled(draw: Draw, name: string): Sample {
  const hash = draw.pick([draw.text('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 8), draw.base62(8)])
  const own = [name, `../dist/chunk-${hash}.js`] as const
  return thrown(draw, { message: `no rate for zone ${draw.int(1, 90)}`, own })
}

const NUMBER = 'Invalid input: expected number, received string'

export const CODE: Families = {
  'json: odd token': (draw) => {
    const text = draw.pick([
      `{"a": ${draw.base36(6)}}`,
      `<!DOCTYPE ht`,
      `{'id': ${draw.id()}`,
      '[1,\n2,]',
    ])
    const token = draw.pick(["'a'", "'<'", "'''", "']'"])
    return parsed(
      draw,
      `Unexpected token ${token}, ${draw.pick([`"${text}"`, `"${text}"...`, `..."${text}"...`])} is not valid JSON`,
    )
  },
  'json: cut short': (draw) => parsed(draw, 'Unexpected end of JSON input'),
  'json: cut in a string': (draw) => parsed(draw, `Unterminated string in JSON at ${place(draw)}`),
  'json: no comma': (draw) =>
    parsed(draw, `Expected ',' or '}' after property value in JSON at ${place(draw)}`),
  'zod: price of a line': (draw) => invalid(draw, inLines(draw, 'price', NUMBER)),
  'zod: quantity of a line': (draw) => invalid(draw, inLines(draw, 'quantity', NUMBER)),
  'zod: price and tax of lines': (draw) =>
    invalid(
      draw,
      draw
        .several(1, 4, () => draw.int(0, 60))
        .flatMap((at) => [
          { message: 'Required', path: ['lines', at, 'net'] },
          { message: 'Required', path: ['lines', at, 'tax'] },
        ]),
    ),
  'zod: e-mail': (draw) =>
    invalid(draw, [{ message: 'Invalid email address', path: ['customer', 'email'] }]),
  'type error: total': (draw) => undefinedRead(draw, 'total'),
  'type error: currency': (draw) => undefinedRead(draw, 'currency'),
  'type error: no function': (draw) =>
    thrown(draw, {
      type: 'TypeError',
      message: 'order.items.reduce is not a function',
      own: ['sum', 'pricing.ts'],
    }),
  'type error: path is no text': (draw) =>
    thrown(draw, {
      type: 'TypeError',
      message: 'The "path" argument must be of type string. Received undefined',
      fields: { code: 'ERR_INVALID_ARG_TYPE' },
      own: ['archive', 'files.ts'],
    }),
  'type error: data is no text': (draw) =>
    thrown(draw, {
      type: 'TypeError',
      message: 'The "data" argument must be of type string. Received undefined',
      fields: { code: 'ERR_INVALID_ARG_TYPE' },
      own: ['archive', 'files.ts'],
    }),
  'bundle: rate of a parcel': (draw) => bundled(draw, 'rateOfParcel'),
  'bundle: rate of a pallet': (draw) => bundled(draw, 'rateOfPallet'),
}
