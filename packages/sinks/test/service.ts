import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '@redrive/testing'

/** 60 s: a service that has not begun by then will not. */
const START_MS = 60_000
/** 50 ms between two looks. */
const POLL_MS = 50

/** A real service in a process and a folder of its own. */
export interface Service {
  readonly port: number
  /** All it has said so far. */
  said(): string
  stop(): Promise<void>
}

export async function startService(
  binary: string,
  config: (port: number, folder: string) => string,
  args: (path: string) => readonly string[],
): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-service-'))
  const port = await freePort()
  const path = join(folder, 'config.yaml')
  await writeFile(path, config(port, folder))
  const child: ChildProcess = spawn(binary, args(path), { cwd: folder })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  }
  return {
    port,
    said: () => said,
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Waits like `until`, and adds what the service has logged to the error. */
export async function untilServed<T>(what: string, service: Service, probe: () => Promise<T>) {
  try {
    return await until(what, probe, { timeout: START_MS, interval: POLL_MS })
  } catch (error) {
    throw new Error(`The service logged:\n${service.said()}`, { cause: error })
  }
}
