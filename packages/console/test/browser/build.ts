import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const folder = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the console and the page of components, once for all test files. */
export async function setup(): Promise<void> {
  const run = promisify(execFile)
  // A separate process, because the test runner sets NODE_ENV, with which React would be the development version.
  const env = { ...process.env, NODE_ENV: 'production' }
  for (const mode of ['production', 'components']) {
    await run('pnpm', ['exec', 'vite', 'build', '--mode', mode], { cwd: folder, env })
  }
}
