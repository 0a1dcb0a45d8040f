import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = new URL('../../../../', import.meta.url).pathname
const PACKAGE = join(ROOT, 'packages/cli')
const MAIN = join(PACKAGE, 'bundle/main.js')

/** Creates a project in which npm seems to have installed `redrive`. `npx redrive` runs the built program. */
export function project(config: object): string {
  execFileSync('tsc', ['-b', PACKAGE], { cwd: ROOT, stdio: 'inherit' })
  execFileSync('pnpm', ['run', 'build'], { cwd: PACKAGE, stdio: 'ignore' })
  chmodSync(MAIN, 0o755)
  const folder = mkdtempSync(join(tmpdir(), 'redrive-terminal-'))
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(PACKAGE, join(folder, 'node_modules/redrive'))
  symlinkSync('../redrive/bundle/main.js', join(folder, 'node_modules/.bin/redrive'))
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  writeFileSync(join(folder, 'redrive.config.json'), JSON.stringify(config))
  return folder
}
