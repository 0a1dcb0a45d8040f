// The server as users run it, and a producer of dead letters that it ingests at the same time.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '@redrive/dev-support'
import { connect } from 'amqplib'
import { bodyOf } from '../catalog/letters.ts'

const PROGRAM = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))
/** 60 s: a start takes seconds on a busy machine. */
const START_MS = 60_000

export interface Program {
  readonly url: string
  /** Returns the resident memory in MB, as Linux counts it. */
  memory(): number
  /** Returns the processor time in ms, as Linux counts it in steps of 10 ms. */
  cpuMs(): number
  /** Stops the process. A second call waits for the same end. */
  stop(): Promise<void>
}

/** Resolves when the server reports that it is ready. */
export async function startServer(roles: string, config: object): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'))
  const listen = `127.0.0.1:${await freePort()}`
  const path = join(folder, 'redrive.config.json')
  writeFileSync(path, JSON.stringify({ ...config, listen }))
  const log = openSync(join(folder, 'log'), 'a')
  const args = ['--conditions=@redrive/source', PROGRAM, 'serve', '--role', roles, '--config', path]
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, log], cwd: folder })
  const url = `http://${listen}`
  await ready(child, url, folder)
  let stopped: Promise<void> | undefined
  return {
    url,
    memory: () => memoryOf(child.pid),
    cpuMs: () => cpuMsOf(child.pid),
    stop() {
      stopped ??= stop(child, folder)
      return stopped
    },
  }
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
  rmSync(folder, { recursive: true })
}

async function ready(child: ChildProcess, url: string, folder: string): Promise<void> {
  const endsAt = performance.now() + START_MS
  for (;;) {
    // Refused until the server listens.
    const isReady = await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return
    if (child.exitCode !== null || performance.now() > endsAt) {
      throw new Error(
        `The server is not ready. Its log:\n${readFileSync(join(folder, 'log'), 'utf8')}`,
      )
    }
    await after(50)
  }
}

function memoryOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

/** A clock tick of Linux. */
const TICK_OF_CPU_MS = 10
/** User and system time, counted from the first field after the name of the program. */
const CPU_FIELDS = [11, 12]

function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return CPU_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0) * TICK_OF_CPU_MS
}

export interface Producer {
  sent(): number
  /** Sends no more. */
  pause(): void
  stop(): Promise<void>
}

const TICK_MS = 50

/** Fills a dead-letter queue at a rate, as a broker does when a consumer rejects messages. */
export async function produce(url: string, queue: string, perSecond: number): Promise<Producer> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  const beganAt = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - beganAt) / 1_000) * perSecond)
    for (; sent < due; sent++) {
      const messageId = `b-${sent}`
      channel.sendToQueue(queue, bodyOf(sent), { persistent: true, messageId })
    }
  }, TICK_MS)
  return {
    sent: () => sent,
    pause: () => clearInterval(timer),
    async stop() {
      clearInterval(timer)
      await channel.waitForConfirms()
      await channel.deleteQueue(queue)
      await connection.close()
    },
  }
}
