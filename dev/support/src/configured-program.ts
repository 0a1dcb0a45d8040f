import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'

/** A server that a test configures and starts, in a separate process and folder. */
export interface ConfiguredProgram {
  /** The port that the config names. */
  readonly port: number
  /** Returns all its output so far. */
  output(): string
  stop(): Promise<void>
}

/** Starts a program with a config file, whose path is an argument. It does not wait until the program responds. */
export async function startConfigured(
  program: string,
  config: (port: number, folder: string) => string,
  args: (path: string) => readonly string[],
): Promise<ConfiguredProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-service-'))
  const port = await freePort()
  const path = join(folder, 'config.yaml')
  await writeFile(path, config(port, folder))
  const child: ChildProcess = spawn(program, args(path), { cwd: folder })
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
