import { describe, expect, it } from 'vitest'
import { file, loki, otlp, sentry, webhook } from '../src/index.ts'

const URL = "url: expected a URL such as 'https://example.com', got undefined"
const unset = (variable: string) => `; probably the environment variable ${variable} is not set`
const url = undefined as never

describe('an option from an environment variable that is not set', () => {
  it.each([
    ['loki()', () => loki({ url }), `${URL}${unset('LOKI_URL')}`],
    ['otlp()', () => otlp({ url }), `${URL}${unset('OTEL_EXPORTER_OTLP_ENDPOINT')}`],
    [
      'sentry()',
      () => sentry({ dsn: undefined as never }),
      `dsn: expected a URL such as 'https://key@o1.ingest.sentry.io/2', got undefined${unset('SENTRY_DSN')}`,
    ],
    [
      'webhook()',
      () => webhook({ url, secret: undefined as never }),
      `${URL}${unset('WEBHOOK_URL')}\n- secret: expected 'whsec_' and 24 to 64 bytes in base64, such as the output of: echo whsec_$(openssl rand -base64 32), got undefined${unset('WEBHOOK_SECRET')}`,
    ],
    [
      'file()',
      () => file({ path: undefined as never }),
      'path: expected the path of a file, got undefined',
    ],
  ])('is reported by %s in a sentence', (call, create, problems) => {
    expect(create).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: `The options of ${call} are invalid:\n- ${problems}`,
      }),
    )
  })

  it('does not print a secret', () => {
    expect(() => loki({ url: 'user:hunter2@loki' } as never)).toThrow(/^(?!.*hunter2)/s)
  })
})
