import { spawn } from 'node:child_process'
import type { Io } from '../io.ts'

/** The program that opens a URL, by platform. */
const OPENERS: Readonly<Record<string, readonly [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
  linux: ['xdg-open'],
}

/** Opens a URL in the browser of the user. Does nothing without a desktop; the command also prints the URL. */
export function openBrowser({ env, stderr }: Io, url: string): void {
  const { DISPLAY, WAYLAND_DISPLAY } = env as Readonly<Record<string, string | undefined>>
  const opener = OPENERS[process.platform]
  const hasDesktop = process.platform !== 'linux' || Boolean(DISPLAY || WAYLAND_DISPLAY)
  if (opener === undefined || !stderr.isTTY || !hasDesktop) return
  const [program, ...args] = opener
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
  // Without this program, the user opens the printed URL.
  child.on('error', () => undefined)
  child.unref()
}
