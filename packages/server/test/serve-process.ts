/** Runs a server in a separate process: node serve-process.ts <config> <roles>. */
import { loadConfig, serveUntilSignal } from '../src/index.ts'
import { parseServeRoles } from '../src/serve-role.ts'

const [file = '', roles = ''] = process.argv.slice(2)
try {
  const { config } = await loadConfig({ file })
  const code = await serveUntilSignal(config, {
    roles: parseServeRoles(roles === '' ? [] : [roles]),
  })
  process.exit(code)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  // No process.exit(): a failed start that leaves something open would keep the process, and the test would fail.
  process.exitCode = 1
}
