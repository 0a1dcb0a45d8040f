/** A server in a process of its own: node serve-process.ts <config> <roles>. */
import { loadConfig, parseServeRoles, serveUntilSignal } from '../src/index.ts'

const [file = '', roles = ''] = process.argv.slice(2)
try {
  const { config } = await loadConfig({ file })
  const code = await serveUntilSignal(config, {
    roles: parseServeRoles(roles === '' ? [] : [roles]),
  })
  process.exit(code)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  // Not ended by force: what a start that was refused leaves behind would keep the process.
  process.exitCode = 1
}
