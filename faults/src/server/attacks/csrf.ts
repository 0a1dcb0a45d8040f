import { randomUUID } from 'node:crypto'
import type { BrowserContext } from 'playwright-core'
import type { Scenario } from '../../harness/scenario.ts'
import { must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { planned } from './runs.ts'
import { signIn } from './sign-in.ts'
import type { Target } from './target.ts'

/** A page of another site makes the browser of a signed-in user send a request. */
export const CSRF: Scenario = attack(
  'csrf',
  'pages of another origin, same-site and cross-site, act with the session of a visitor',
  async (scene) => {
    const { port } = scene.target.canary
    // Another port is another origin but the same site. So the browser sends SameSite=Lax cookies.
    const origins = [`http://127.0.0.1:${port}`, `http://localhost:${port}`]
    await Promise.all(origins.map((origin) => from(origin, scene)))
  },
)

interface Prey {
  readonly run: string
  readonly deadLetter: string
}

async function from(origin: string, scene: Scene): Promise<void> {
  const { target, tries } = scene
  const { as, pool, queues } = target
  const [deadLetter = ''] = await queues.kill(pool, 'orders', [{}])
  const { id: run } = await planned(as.alice, { ids: [deadLetter] })
  const attacks = pagesFor(target.server.url, { run, deadLetter })
  const context = await signedIn(target)
  for (const [what, page] of Object.entries(attacks)) {
    await visit(scene, context, origin, page)
    const answer = await context.request.get(`${target.server.url}/api/v1/me`)
    tries.note(`${origin}: ${what} ends the session`, answer.status() !== 200)
    const { state } = must<{ state: string }>(await as.root('GET', `/api/v1/replays/${run}`))
    tries.note(`${origin}: ${what} changes the run`, state !== 'planned')
    const { status } = must<{ status: string }>(
      await as.root('GET', `/api/v1/dead-letters/${deadLetter}`),
    )
    tries.note(`${origin}: ${what} changes the dead letter`, status !== 'open')
  }
  await context.close()
}

async function signedIn(target: Target): Promise<BrowserContext> {
  const context = await (await target.browser()).newContext()
  const page = await context.newPage()
  await signIn(page, target.server.url, 'alice')
  await page.close()
  return context
}

/**
 * Returns pages that set `done` after the browser has sent the request, whatever the response.
 * `seen` contains what the page could read.
 */
function pagesFor(server: string, { run, deadLetter }: Prey): Readonly<Record<string, string>> {
  const ask = (path: string, init: string) =>
    `<script>fetch('${server}${path}',{credentials:'include',${init}})
      .then((answer)=>answer.text()).then((text)=>{self.seen=text},()=>{}).finally(()=>{self.done=1})</script>`
  const form = (path: string, type: string, field: string) =>
    `<iframe name=f></iframe><form method=post target=f action='${server}${path}' enctype='${type}'>
      <input name='${field}' value='x'></form><script>
      document.querySelector('iframe').onload=()=>{if(self.sent)self.done=1};
      setTimeout(()=>{self.done=1},1000);self.sent=1;document.querySelector('form').submit()</script>`
  const json = `{"ids":["${deadLetter}"],"x":"`
  const headers = `headers:{'content-type':'application/json','idempotency-key':'1','x-redrive-csrf':'1'}`
  return {
    'a form that logs out': form('/auth/logout', 'application/x-www-form-urlencoded', 'a'),
    'a plain fetch that logs out': ask('/auth/logout', `method:'POST',mode:'no-cors'`),
    'a plain fetch that cancels': ask(
      `/api/v1/replays/${run}/cancel`,
      `method:'POST',mode:'no-cors'`,
    ),
    'a fetch that cancels': ask(`/api/v1/replays/${run}/cancel`, `method:'POST',${headers}`),
    'a fetch that discards': ask(
      '/api/v1/dead-letters/discard',
      `method:'POST',body:'{"ids":["${deadLetter}"]}',${headers}`,
    ),
    'a form that discards as text': form('/api/v1/dead-letters/discard', 'text/plain', json),
    'a beacon that discards': `<script>navigator.sendBeacon('${server}/api/v1/dead-letters/discard',
      new Blob(['{"ids":["${deadLetter}"]}'],{type:'text/plain'}));self.done=1</script>`,
    'a page that reads': ask('/api/v1/me', ''),
    'a script that reads': `<script src='${server}/api/v1/me' onload='self.seen="csrf"' onerror='0'></script>
      <script>self.done=1</script>`,
    'a frame': `<iframe src='${server}/api/reference'></iframe><script>
      document.querySelector('iframe').onload=()=>{self.done=1};setTimeout(()=>{self.done=1},1000)</script>`,
  }
}

async function visit(
  { target, tries }: Scene,
  context: BrowserContext,
  origin: string,
  content: string,
): Promise<void> {
  const path = `/attack-${randomUUID()}`
  target.canary.pages.set(path, content)
  const page = await context.newPage()
  await page.goto(`${origin}${path}`)
  await page.waitForFunction('self.done === 1')
  const seen = String(await page.evaluate('self.seen ?? ""'))
  tries.note(
    `${origin}: a page reads data that only the signed-in user may read`,
    seen.includes('csrf'),
  )
  const framed = page.frames().filter((frame) => frame.url().startsWith(target.server.url))
  const texts = await Promise.all(framed.map((frame) => frame.title()))
  tries.note(
    `${origin}: a page of the server is shown in a frame`,
    texts.some((text) => text.includes('Redrive')),
  )
  await page.close()
}
