import { urlOf } from '@redrive/dev-support'
import { beforeAll, describe, expect, test } from 'vitest'
import { run } from './world.ts'

/** Checks only the output and the exit codes. The tests of the doctor package check the findings. */
describe('doctor', () => {
  let postgres: string
  beforeAll(async () => {
    postgres = await urlOf('postgres')
  }, 120_000)

  test('prints findings and the grade, and fails for risks of loss that are not accepted', async () => {
    const { code, stdout } = await run(['doctor', postgres])
    expect(stdout).toMatch(/^PostgreSQL: \d+ findings, grade [BC]/)
    expect(stdout).toMatch(/^Grade [BC]: /m)
    expect(code).toBe(1)
    const { stdout: json } = await run(['doctor', postgres, '--json'])
    interface Report {
      readonly brokers: readonly {
        readonly findings: readonly { readonly check: string; readonly severity: string }[]
      }[]
    }
    const found = (JSON.parse(json) as Report).brokers.flatMap(({ findings }) => findings)
    const losing = found.filter(({ severity }) => severity === 'loss').map(({ check }) => check)
    expect((await run(['doctor', postgres, '--accept', ...losing])).code).toBe(0)
    // Users type the address last, although the flag takes all following arguments.
    expect((await run(['doctor', '--accept', ...losing, postgres])).code).toBe(0)
  })

  test.each([
    ['doctor', 'ftp://somewhere'],
    ['doctor', 'postgres://127.0.0.1/x', '--accept', 'no.such-check'],
    ['topology', 'somewhere'],
  ])('rejects invalid arguments: %s %s', async (...args) => {
    expect((await run(args)).code).toBe(2)
  })

  test('never prints an address with a password as an unknown check', async () => {
    const address = 'ftp://ada:hunter2@somewhere'
    const { code, stderr } = await run(['doctor', '--accept', 'no.such-check', address])
    expect(code).toBe(2)
    expect(stderr).toContain('no.such-check')
    expect(stderr).not.toContain('hunter2')
  })

  test('reports a broker that cannot be reached', async () => {
    const { code, stdout } = await run(['doctor', 'http://guest:guest@127.0.0.1:9'])
    expect(code).toBe(1)
    expect(stdout).toContain('rabbitmq.unreadable')
    expect(stdout).not.toContain('guest:guest')
  })
})
