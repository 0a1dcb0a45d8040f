import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown } from './family.ts'

const PG = ['/app/node_modules/pg-pool/index.js:45:11']

function postgres(draw: Draw, code: string, message: string, fields: object = {}): Sample {
  const [own, libraries] = [['save', 'store.ts'], PG] as const
  const allFields = { code, severity: 'ERROR', length: draw.int(90, 300), ...fields }
  return thrown(draw, { type: 'error', message, own, libraries, fields: allFields })
}

function redis(draw: Draw, message: string, fields: object = {}): Sample {
  return thrown(draw, { type: 'ReplyError', message, own: ['cache', 'cache.ts'], fields })
}

export const DATABASES: Families = {
  'postgres: e-mail taken': (draw) =>
    postgres(
      draw,
      '23505',
      'duplicate key value violates unique constraint "customers_email_key"',
      { detail: `Key (email)=(${draw.email()}) already exists.` },
    ),
  'postgres: order number taken': (draw) =>
    postgres(draw, '23505', 'duplicate key value violates unique constraint "orders_number_key"', {
      detail: `Key (number)=(${draw.id()}) already exists.`,
    }),
  'postgres: customer is missing': (draw) =>
    postgres(
      draw,
      '23503',
      'insert or update on table "orders" violates foreign key constraint "orders_customer_id_fkey"',
      { detail: `Key (customer_id)=(${draw.uuid()}) is not present in table "customers".` },
    ),
  'postgres: price is null': (draw) =>
    postgres(
      draw,
      '23502',
      `null value in column "price" of relation "order_lines_2026_${draw.int(10, 12)}" violates not-null constraint`,
    ),
  'postgres: amount out of range': (draw) =>
    postgres(
      draw,
      '23514',
      `new row for relation "payments_p2026${draw.int(10, 12)}${draw.int(10, 28)}" violates check constraint "payments_amount_check"`,
    ),
  'postgres: id is no uuid': (draw) =>
    postgres(draw, '22P02', `invalid input syntax for type uuid: "${draw.word()}"`),
  'postgres: deadlock': (draw) =>
    postgres(draw, '40P01', 'deadlock detected', {
      detail: `Process ${draw.id()} waits for ShareLock on transaction ${draw.id()}; blocked by process ${draw.id()}.`,
    }),
  'postgres: not serialisable': (draw) =>
    postgres(draw, '40001', 'could not serialize access due to concurrent update'),
  'postgres: statement too slow': (draw) =>
    postgres(draw, '57014', 'canceling statement due to statement timeout'),
  'postgres: too many clients': (draw) =>
    postgres(draw, '53300', 'sorry, too many clients already', { severity: 'FATAL' }),
  'postgres: refused': (draw) => {
    const address = draw.address()
    return thrown(draw, {
      message: `connect ECONNREFUSED ${address}`,
      fields: { code: 'ECONNREFUSED', syscall: 'connect', port: draw.int(1, 65_535) },
    })
  },
  'redis: slot has moved': (draw) =>
    redis(draw, `MOVED ${draw.int(0, 16_383)} ${draw.ip()}:${draw.int(6379, 6390)}`),
  'redis: replica': (draw) =>
    redis(draw, "READONLY You can't write against a read only replica.", {
      command: { name: 'set', args: [`cart:${draw.id()}`] },
    }),
  'redis: command too slow': (draw) => redis(draw, 'Command timed out'),
  'redis: script is gone': (draw) =>
    redis(draw, `NOSCRIPT No matching script ${draw.hex(40)}. Please use EVAL.`),
}
