import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@redrive/dev-support'
import { until } from '@redrive/testing'

/** 60 s: much longer than a service needs to start. */
const START_MS = 60_000
/** 50 ms between two checks. */
const POLL_MS = 50

/** A real service in a separate process and folder. */
export interface Service {
  readonly port: number
  /** Returns all its output so far. */
  output(): string
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
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  return {
    port,
    output: () => output,
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Waits like `until`, and adds the log of the service to the error. */
export async function untilServed<T>(what: string, service: Service, probe: () => Promise<T>) {
  try {
    return await until(what, probe, { timeout: START_MS, interval: POLL_MS })
  } catch (error) {
    throw new Error(`The service logged:\n${service.output()}`, { cause: error })
  }
}
