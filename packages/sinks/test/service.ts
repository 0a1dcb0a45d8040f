import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** 60 s: a service that has not begun by then will not. */
const DEADLINE_MS = 60_000
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

/** Looks again until there is an answer; says what was missing when there never is. */
export async function until<T>(
  what: string,
  service: Service,
  look: () => Promise<T | undefined>,
): Promise<T> {
  const endsAt = performance.now() + DEADLINE_MS
  let last: unknown
  while (performance.now() < endsAt) {
    try {
      const found = await look()
      if (found !== undefined) return found
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`Expected within ${DEADLINE_MS} ms: ${what}\n${service.said()}`, { cause: last })
}
