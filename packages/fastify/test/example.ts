import { freePort, type RunningProgram, runProgram } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { expect, onTestFinished } from 'vitest'

interface Service {
  readonly program: RunningProgram
  readonly get: (path: string) => Promise<{ readonly status: number; readonly body: unknown }>
  readonly order: (body: unknown) => Promise<number>
}

/** Starts examples/fastify-service and waits until it listens. */
async function startService(env: Readonly<Record<string, string>>): Promise<Service> {
  const port = await freePort()
  const program = runProgram('examples/fastify-service/src/main.ts', { PORT: `${port}`, ...env })
  onTestFinished(() => program.kill('SIGKILL'))
  const base = `http://127.0.0.1:${port}`
  let exit: number | null | undefined
  void program.exited.then((code) => (exit = code))
  await until('the service listens', () => {
    if (exit !== undefined) throw new Error(`The service ended: ${program.printed()}`)
    return program.printed().includes('Server listening')
  })
  return {
    program,
    async get(path) {
      const response = await fetch(base + path)
      return { status: response.status, body: await response.json() }
    },
    async order(body) {
      const headers = { 'content-type': 'application/json' }
      const options = { method: 'POST', headers, body: JSON.stringify(body) }
      return (await fetch(`${base}/orders`, options)).status
    },
  }
}

/** Sends good and bad orders to the example, then stops it. */
export async function exerciseExample(env: Readonly<Record<string, string>>): Promise<void> {
  const { program, get, order } = await startService(env)
  expect(await get('/healthz/ready')).toEqual({
    status: 200,
    body: { status: 'up', consumers: { orders: { status: 'up', reasons: [] } } },
  })
  expect(await order({ id: 'o-1', amount: 'ten' })).toBe(400)
  expect(await order({ id: 'o-1', amount: 10, card: 'good' })).toBe(202)
  expect(await order({ id: 'o-2', amount: 10, card: 'slow-bank' })).toBe(202)
  expect(await order({ id: 'o-3', amount: 10, card: 'declined' })).toBe(202)
  await until('both good orders are charged', async () => {
    const { body } = await get('/charged')
    return (body as string[]).length === 2
  })
  expect((await get('/charged')).body).toEqual(expect.arrayContaining(['o-1', 'o-2']))
  await until('the declined one is a dead letter', () =>
    /is now a dead letter.*CardDeclined/.test(program.printed()),
  )
  program.kill('SIGTERM')
  expect(await program.exited).toBe(0)
}
