import { describe, expect, test } from 'vitest'
import { hiding } from '../src/hiding.ts'

const hide = hiding()

describe('detectors hide', () => {
  test.each([
    ['card 4111111111111111 declined', 'card [hidden: card number] declined'],
    ['card 4111 1111 1111 1111.', 'card [hidden: card number].'],
    ['card 4111-1111-1111-1111', 'card [hidden: card number]'],
    ['amex 3782 822463 10005', 'amex [hidden: card number]'],
    ['amex=378282246310005;', 'amex=[hidden: card number];'],
    ['DE89370400440532013000', '[hidden: IBAN]'],
    ['from DE89 3704 0044 0532 0130 00 TO BE PAID', 'from [hidden: IBAN] TO BE PAID'],
    ['GB82WEST12345698765432, next', '[hidden: IBAN], next'],
    ['no user bob.smith+1@mail.example.com found', 'no user [hidden: e-mail] found'],
    ['Authorization: Bearer abcdef123456', 'Authorization: Bearer [hidden: token]'],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl!', 'jwt [hidden: token]!'],
    ['key AKIAIOSFODNN7EXAMPLE', 'key [hidden: token]'],
    [
      'amqp://app:s3cret@rabbit.internal/prod',
      'amqp://app:[hidden: password]@rabbit.internal/prod',
    ],
    ['login?password=hunter2&next=1', 'login?password=[hidden: secret]&next=1'],
    ['{"client_secret":"abc","id":1}', '{"client_secret":"[hidden: secret]","id":1}'],
    ['password="hunter2"', 'password="[hidden: secret]"'],
    ['password: hunter2, user: bob', 'password: [hidden: secret], user: bob'],
    ['body: {\\"password\\":\\"hunter2\\"}', 'body: {\\"password\\":\\"[hidden: secret]\\"}'],
    ['postgres://app:a/b@db/orders', 'postgres://app:[hidden: password]@db/orders'],
    ['de89 3704 0044 0532 0130 00', '[hidden: IBAN]'],
    ['ID12 FROM ACCOUNT DE89370400440532013000', 'ID12 FROM ACCOUNT [hidden: IBAN]'],
    [
      'the transfer was sent to account DE89370400440532013000.',
      'the transfer was sent to account [hidden: IBAN].',
    ],
    ['NO9386011117947', '[hidden: IBAN]'], // the shortest
    ['Authorization: Bearer  abcdef123456', 'Authorization: Bearer [hidden: token]'],
    [
      'jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0 without a signature',
      'jwt [hidden: token] without a signature',
    ],
    ['no user bob@4711.example.com', 'no user [hidden: e-mail]'],
    ['s3://app:s3cret@files.internal/a', 's3://app:[hidden: password]@files.internal/a'],
    ['order no.4111111111111111', 'order no.[hidden: card number]'],
    ['password = hunter2', 'password = [hidden: secret]'],
    ...['apikey', 'api-key', 'api_key', 'accesskey', 'access-key', 'access_key'].map((name) => [
      `${name}=abc1`,
      `${name}=[hidden: secret]`,
    ]),
    [
      'a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b',
      'a [hidden: private key] b',
    ],
    ['cut -----BEGIN PRIVATE KEY-----\nMIIE', 'cut [hidden: private key]'],
  ])('%j', (text, expected) => {
    expect(hide(text)).toBe(expected)
  })

  test.each([
    'failed at 1731900000000', // a time in ms
    'order 4111111111111112 not found', // not the check digit of a card
    'connect ECONNREFUSED 127.0.0.1:5672',
    'Unexpected token } in JSON at position 4',
    'pg@8.11.0/node_modules/pg',
    'token expired',
    'Basic authentication failed',
    'basic validation error',
    'position 52.5200065999999',
    'api key is missing',
    'DE89 is not an account',
    'account DE89.',
    'order 14111111111111110 not found', // the check digit of a card, but no card begins with 1
    '550e8400-e29b-41d4-a716-446655440000',
    '2026-11-18 2026-11-17 10:00',
    '',
  ])('nothing in %j', (text) => {
    expect(hide(text)).toBe(text)
  })

  test('only what is switched on', () => {
    const text = 'bob@example.com 4111111111111111'
    expect(hiding(['card'])(text)).toBe('bob@example.com [hidden: card number]')
    expect(hiding([])(text)).toBe(text)
  })
})
