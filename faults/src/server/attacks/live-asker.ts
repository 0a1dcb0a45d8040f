/**
 * Requests `/livez` continuously until the harness stops it, and records the duration of each
 * response.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ready } from '../../harness/process.ts'
import { openHistory } from '../../evidence/history.ts'
import { watchStandstills } from '../../evidence/stalls.ts'
import { lasting } from '../../harness/wait.ts'
import { asking } from './ask.ts'
import { ASKER, type LiveAsker, LIVEZ } from './live.ts'

const { url, folder } = JSON.parse(process.argv[2] ?? '') as LiveAsker
const LOOK_MS = 25
const history = openHistory(folder, ASKER)
const server = asking(url)

/** A minimal server in a separate process. Its response time is the delay of the machine itself. */
const BARE = `
require('node:http').createServer((_, response) => response.end())
  .listen(0, '127.0.0.1', function () { console.log(this.address().port) })
process.stdin.resume().on('end', () => process.exit())`
const bare = spawn(process.execPath, ['-e', BARE], { stdio: ['pipe', 'pipe', 'inherit'] })
const [port] = (await once(bare.stdout, 'data')) as [Buffer]
const other = asking(`http://127.0.0.1:${port.toString().trim()}`)

async function look(): Promise<void> {
  try {
    const { ms } = await server('GET', LIVEZ)
    history.write({ what: 'measured', name: LIVEZ, value: ms })
  } catch (error) {
    history.write({ what: 'note', text: String(error) })
  }
}

let isOver = false
ready(() => {
  isOver = true
})
watchStandstills(
  (standstill) => history.write({ what: 'stood_still', ...standstill }),
  () => other('GET', '/'),
)
while (!isOver) {
  await look()
  await lasting(LOOK_MS)
}
process.exit()
