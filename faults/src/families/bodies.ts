import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown, told } from './family.ts'
import { familiesOf } from './names.ts'
import { filled, orderBody } from './pools.ts'

/** A payload in front of the reason. */
function afterPayload(draw: Draw, reason: string): Sample {
  const message = `POST https://${filled(draw, '{host}')}/orders with ${orderBody(draw)} failed: ${reason}`
  return thrown(draw, { type: 'ErpError', message, own: ['send', 'erp.ts'] })
}

/** A response of a partner in the message. */
function response(draw: Draw, body: object): Sample {
  const json = filled(draw, JSON.stringify(body)).replaceAll('{}', draw.id())
  const message = `PUT https://api.${filled(draw, '{slug}')}.example/v2/refunds/${draw.id()} responded 422: ${json}`
  return thrown(draw, { type: 'PartnerError', message, own: ['refund', 'partner.ts'] })
}

/** An HTTP client that keeps the body. */
function client(draw: Draw, data: unknown): Sample {
  const fields = { response: { status: 400, data }, config: { url: `/v1/${draw.uuid()}` } }
  return thrown(draw, {
    type: 'AxiosError',
    message: 'Request failed with status code 400',
    fields,
  })
}

const issues = (draw: Draw, code: string, path: readonly (string | number)[]) => {
  const list = draw.several(1, 3, () => ({
    code,
    expected: 'string',
    received: 'undefined',
    path: path.map((step) => (step === 0 ? draw.int(0, 40) : step)),
    message: 'Required',
  }))
  const message = JSON.stringify(list, undefined, 2)
  return thrown(draw, { type: 'ZodError', message, own: ['check', 'bodies.ts'] })
}

function python(draw: Draw, type: string, message: string, own: string): Sample {
  const line = () => draw.int(5, 400)
  const frame = (file: string, name: string) =>
    `  File "${file}", line ${line()}, in ${name}\n    result = ${name}(payload)`
  const [file = '', name = ''] = own.split(' ')
  const root = draw.pick(['/app', '/srv/worker-3', '/home/svc/releases/20261117'])
  const stack = [
    'Traceback (most recent call last):',
    frame('/usr/lib/python3.12/site-packages/celery/app/trace.py', 'trace_task'),
    frame(`${root}/tasks/main.py`, 'run'),
    frame(`${root}/tasks/${file}`, name),
    frame('/usr/local/lib/python3.12/site-packages/requests/models.py', 'raise_for_status'),
    `${type}: ${message}`,
  ].join('\n')
  return told({ type, message, stack })
}

function php(draw: Draw, method: string): Sample {
  const line = () => draw.int(5, 400)
  return told({
    type: 'RuntimeException',
    message: filled(draw, 'Order of {person} could not be exported'),
    stack: [
      `#0 /var/www/vendor/guzzle/src/Client.php(${line()}): GuzzleHttp\\Client->send()`,
      `#1 /var/www/src/Export.php(${line()}): Acme\\Export->${method}()`,
      '#2 {main}',
    ].join('\n'),
  })
}

/** Messages with bodies, payloads and properties that name the kind, and stacks of other languages. */
export const BODIES: Families = {
  'payload: customer is unknown': (draw) => afterPayload(draw, '422 customer is unknown'),
  'payload: currency is unknown': (draw) => afterPayload(draw, '422 currency is unknown'),
  'payload: too slow': (draw) => afterPayload(draw, '504 no reply within 30 s'),
  'response: closed account': (draw) =>
    response(draw, {
      error: 'Unprocessable Entity',
      reason: 'ACCOUNT_CLOSED',
      holder: '{person}',
      at: '{time}',
    }),
  'response: daily limit': (draw) =>
    response(draw, {
      error: 'Unprocessable Entity',
      reason: 'LIMIT_REACHED',
      holder: '{person}',
      at: '{time}',
    }),
  'response: text of the limit': (draw) =>
    response(draw, {
      message: 'limit of {money} {currency} reached for {person}',
      traceId: '{uuid}',
    }),
  'response: text of the account': (draw) =>
    response(draw, { message: 'account {iban} of {person} does not exist', traceId: '{uuid}' }),
  'response: details': (draw) =>
    response(draw, {
      name: 'UNPROCESSABLE_ENTITY',
      details: [{ issue: 'CARD_EXPIRED', value: '{n}' }],
      debug_id: '{hex}',
    }),
  'response: other details': (draw) =>
    response(draw, {
      name: 'UNPROCESSABLE_ENTITY',
      details: [{ issue: 'CARD_STOLEN', value: '{n}' }],
      debug_id: '{hex}',
    }),
  'client: sender not verified': (draw) =>
    client(draw, {
      errors: [
        {
          message: 'The from address does not match a verified sender',
          field: 'from',
          id: draw.id(),
        },
      ],
    }),
  'client: no permission': (draw) =>
    client(draw, { errors: [{ message: 'access forbidden', field: null, id: draw.id() }] }),
  'client: code in text': (draw) =>
    client(draw, JSON.stringify({ code: 'vat_missing', request: draw.uuid() })),
  'client: other code in text': (draw) =>
    client(draw, JSON.stringify({ code: 'vat_invalid', request: draw.uuid() })),
  'zod: text, no iban': (draw) => issues(draw, 'invalid_type', ['payees', 0, 'iban']),
  'zod: text, no bic': (draw) => issues(draw, 'invalid_type', ['payees', 0, 'bic']),
  'python: no rate in tax': (draw) =>
    python(draw, 'KeyError', `'${filled(draw, '{country}')}'`, 'tax.py rate_of'),
  'python: no price in stock': (draw) =>
    python(draw, 'KeyError', `'${filled(draw, '{sku}')}'`, 'stock.py price_of'),
  'python: value of a customer': (draw) =>
    python(draw, 'ValueError', filled(draw, 'customer {person} has no country'), 'tax.py rate_of'),
  'php: export of orders': (draw) => php(draw, 'orders'),
  'php: export of prices': (draw) => php(draw, 'prices'),
  ...familiesOf({
    'gateway: declined, stolen': [
      'PaymentError',
      'charge gateway.ts',
      'Payment of {person} was declined',
      { reason: 'stolen_card' },
    ],
    'gateway: declined, expired': [
      'PaymentError',
      'charge gateway.ts',
      'Payment of {person} was declined',
      { reason: 'expired_card' },
    ],
    'gateway: subcode 12': [
      'PaymentError',
      'capture gateway.ts',
      'Capture failed',
      { errorCode: 'REFUSED', subcode: 12 },
    ],
    'gateway: subcode 14': [
      'PaymentError',
      'capture gateway.ts',
      'Capture failed',
      { errorCode: 'REFUSED', subcode: 14 },
    ],
    'sql: insert of orders': [
      'DrizzleQueryError',
      'save drizzle.ts',
      'Failed query: insert into "orders" ("id", "customer") values ($1, $2), ($3, $4)\nparams: {id*},{person}',
    ],
    'sql: insert of lines': [
      'DrizzleQueryError',
      'save drizzle.ts',
      'Failed query: insert into "order_lines" ("id", "sku") values ($1, $2), ($3, $4)\nparams: {id*},{sku}',
    ],
    'sql: knex, e-mail': [
      'DatabaseError',
      'save knex.ts',
      'insert into "users" ("email", "name") values ($1, $2) - duplicate key value violates unique constraint "users_email_key"',
    ],
    'sql: knex, phone': [
      'DatabaseError',
      'save knex.ts',
      'insert into "users" ("email", "name") values ($1, $2) - duplicate key value violates unique constraint "users_phone_key"',
    ],
    'xml: fault of the partner': [
      'SoapError',
      'call soap.ts',
      '<soap:Fault><faultcode>soap:Client</faultcode><faultstring>Contract of {company} is closed</faultstring></soap:Fault>',
    ],
    'proxy: html page': [
      'GatewayError',
      'call proxy.ts',
      '502 Bad Gateway <html><head><title>502 Bad Gateway</title></head><body>{host}</body></html>',
    ],
    'validator: street': [
      'BadRequestException',
      'check dto.ts',
      'customer.address.street must be a string, customer.name must be longer than or equal to {n} characters',
    ],
    'validator: zip': [
      'BadRequestException',
      'check dto.ts',
      'customer.address.zip must be a string',
    ],
    'status in brackets: 409': ['Error', 'sync crm.ts', 'CRM sync of {company} failed with (409)'],
    'status in brackets: 412': ['Error', 'sync crm.ts', 'CRM sync of {company} failed with (412)'],
    'mongo: validation of a country': [
      'ValidationError',
      'save mongoose.ts',
      'Order validation failed: country: `{country}` is not a valid enum value for path `country`.',
    ],
    'mongo: validation of a colour': [
      'ValidationError',
      'save mongoose.ts',
      'Order validation failed: colour: `{colour}` is not a valid enum value for path `colour`.',
    ],
    's3: no key': [
      'NoSuchKey',
      'load files.ts',
      'The specified key does not exist: imports/{slug}/{file}',
    ],
    'tls: wrong name': [
      'Error',
      'call tls.ts',
      "Hostname/IP does not match certificate's altnames: Host: {host}. is not in the cert's altnames: DNS:{host}",
    ],
  }),
}
