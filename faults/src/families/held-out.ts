/**
 * Families written before their grouping was checked. They measure the rules on unknown errors. If
 * you change a rule because of one of them, move all of them to others.ts and write new ones.
 */
import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown, told } from './family.ts'

const sms = (draw: Draw) => `+${draw.int(1, 99)}${draw.int(1e8, 9e9)}`

function noEntity(draw: Draw, entity: string): Sample {
  const where = JSON.stringify({ where: { id: draw.uuid() } }, undefined, 4)
  const message = `Could not find any entity of type "${entity}" matching: ${where}`
  return thrown(draw, { type: 'EntityNotFoundError', message, own: ['load', 'entities.ts'] })
}

function feign(draw: Draw, status: string, type: string): Sample {
  const id = draw.id()
  const message = `[${status}] during [GET] to [http://stock:8080/items/${id}?warehouse=${draw.int(1, 40)}] [StockClient#item(Long,Integer)]: [{"error":"${draw.word()}","id":${id}}]`
  const stack = `${type}: ${message}\n\tat feign.FeignException.clientErrorStatus(FeignException.java:${draw.int(200, 250)})\n\tat com.acme.stock.Stock.reserve(Stock.java:${draw.int(10, 300)})`
  return told({ type, message, stack })
}

function massTransit(draw: Draw, method: string): Sample {
  return told({
    type: 'System.InvalidOperationException',
    message: 'Sequence contains no elements',
    stack: [
      '   at System.Linq.ThrowHelper.ThrowNoElementsException()',
      '   at System.Linq.Enumerable.First[TSource](IEnumerable`1 source)',
      `   at Acme.Billing.${method}(ConsumeContext\`1 context) in C:\\agent\\_work\\${draw.int(1, 90)}\\s\\Billing\\Consumer.cs:line ${draw.int(10, 400)}`,
    ].join('\r\n'),
  })
}

export const HELD_OUT: Families = {
  'oracle: order number taken': (draw) =>
    thrown(draw, {
      message: `ORA-00001: unique constraint (SHOP.UQ_ORDER_NO) violated on table SHOP.ORDERS columns (ORDER_NO)\nORA-03301: (ORA-00001 details) row with column values (ORDER_NO:${draw.id()}) already exists`,
      fields: { errorNum: 1, code: 'ORA-00001' },
    }),
  'sql server: e-mail taken': (draw) =>
    thrown(draw, {
      type: 'RequestError',
      message: `Violation of UNIQUE KEY constraint 'UQ_Users_Email'. Cannot insert duplicate key in object 'dbo.Users'. The duplicate key value is (${draw.email()}).`,
      fields: { code: 'EREQUEST', number: 2627 },
    }),
  'sql server: phone taken': (draw) =>
    thrown(draw, {
      type: 'RequestError',
      message: `Violation of UNIQUE KEY constraint 'UQ_Users_Phone'. Cannot insert duplicate key in object 'dbo.Users'. The duplicate key value is (${sms(draw)}).`,
      fields: { code: 'EREQUEST', number: 2627 },
    }),
  'sql server: deadlock': (draw) =>
    thrown(draw, {
      type: 'RequestError',
      message: `Transaction (Process ID ${draw.int(50, 900)}) was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.`,
      fields: { code: 'EREQUEST', number: 1205 },
    }),
  'sms: no phone number': (draw) =>
    thrown(draw, {
      type: 'RestException',
      message: `The 'To' number ${sms(draw)} is not a valid phone number.`,
      fields: { status: 400, code: 21_211 },
    }),
  'sms: region is off': (draw) =>
    thrown(draw, {
      type: 'RestException',
      message: `Permission to send an SMS has not been enabled for the region indicated by the 'To' number: ${sms(draw)}`,
      fields: { status: 400, code: 21_408 },
    }),
  'service bus: lock is lost': (draw) =>
    thrown(draw, {
      type: 'ServiceBusError',
      message: `MessageLockLost: The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue. Reference:${draw.uuid()}, TrackingId:${draw.uuid()}_G${draw.int(1, 40)}_B${draw.int(1, 40)}, SystemTracker:shop:Queue:orders, Timestamp:${draw.at().toISOString().slice(0, 19)}`,
      fields: { code: 'MessageLockLost' },
    }),
  'object store: no object': (draw) =>
    thrown(draw, {
      type: 'ApiError',
      message: `No such object: shop-archive/invoices/${draw.at().toISOString().slice(0, 10).replaceAll('-', '/')}/inv-${draw.id()}.pdf`,
      fields: { code: 404 },
    }),
  'dto: price of a line': (draw) =>
    thrown(draw, {
      message: `An instance of CreateOrder has failed the validation:\n - property lines[${draw.int(0, 50)}].price has failed the following constraints: isNumber \n`,
      own: ['check', 'dto.ts'],
    }),
  'dto: sku of a line': (draw) =>
    thrown(draw, {
      message: `An instance of CreateOrder has failed the validation:\n - property lines[${draw.int(0, 50)}].sku has failed the following constraints: isString \n`,
      own: ['check', 'dto.ts'],
    }),
  'valibot: weight of a parcel': (draw) =>
    thrown(draw, {
      type: 'ValiError',
      message: 'Invalid type',
      fields: {
        issues: draw.several(1, 4, () => ({
          message: `Invalid type: Expected number but received "${draw.word()}"`,
          path: [{ key: 'parcels' }, { key: draw.int(0, 20) }, { key: 'weight' }],
        })),
      },
    }),
  'orm: no order': (draw) => noEntity(draw, 'Order'),
  'orm: no invoice': (draw) => noEntity(draw, 'Invoice'),
  'hibernate: stale row': (draw) =>
    told({
      type: 'org.springframework.orm.ObjectOptimisticLockingFailureException',
      message: `Row was updated or deleted by another transaction (or unsaved-value mapping was incorrect): [com.acme.Order#${draw.id()}]`,
      stack: `\tat com.acme.orders.Orders.save(Orders.java:${draw.int(10, 99)})`,
    }),
  'feign: no item': (draw) => feign(draw, '404 Not Found', 'feign.FeignException$NotFound'),
  'feign: item is locked': (draw) =>
    feign(draw, '423 Locked', 'feign.FeignException$FeignClientException'),
  'masstransit: nothing in Bill': (draw) => massTransit(draw, 'BillConsumer.Consume'),
  'masstransit: nothing in Refund': (draw) => massTransit(draw, 'RefundConsumer.Consume'),
  'go: redis does not answer': (draw) =>
    thrown(draw, { type: 'SidecarError', message: `dial tcp ${draw.ip()}:6379: i/o timeout` }),
  'browser: page too slow': (draw) =>
    thrown(draw, {
      type: 'NavigationError',
      message: `Navigation timeout of ${draw.pick([15_000, 30_000, 60_000])} ms exceeded for https://shop.example.com/print/${draw.ulid()}?lang=${draw.pick(['de', 'en'])}`,
    }),
  'command: no pdf': (draw) => {
    const file = `/tmp/job-${draw.base62(6)}${draw.int(1, 9)}`
    return thrown(draw, {
      message: `Command failed: wkhtmltopdf --quiet ${file}.html ${file}.pdf\nExit with code 1 due to network error: ContentNotFoundError\n`,
      fields: { code: 1, killed: false },
    })
  },
  'assert: totals differ': (draw) =>
    thrown(draw, {
      type: 'AssertionError',
      message: `Expected values to be strictly equal:\n\n${draw.int(1, 900)}.${draw.int(1, 99)} !== ${draw.int(1, 900)}\n`,
      fields: { code: 'ERR_ASSERTION' },
    }),
}
