import type { Scenario } from '../../harness/scenario.ts'
import { asking, isOk } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { signIn } from './sign-in.ts'
import { Visitor } from './visitor.ts'

/** 43 characters, the length of a session secret. */
const KNOWN = 'A'.repeat(43)

/**
 * A session belongs only to the browser that signed in. A value known before the login must not
 * work.
 */
export const FIXATION: Scenario = attack(
  'fixation',
  'a session that the attacker knows or started becomes the session of another person',
  async (scene) => {
    await planted(scene)
    await inBrowser(scene)
    await begunByOthers(scene)
    await old(scene)
  },
)

const isIn = async ({ target }: Scene, cookie: string) =>
  isOk(await asking(target.server.url, { cookie })('GET', '/api/v1/me'))

/** Cookie names that the server uses, here or with another public URL. */
const NAMES = ['redrive-loopback', '__Host-redrive', 'redrive']

async function planted(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const visitor = new Visitor(target.server.url)
  for (const name of NAMES) visitor.ours.set(name, KNOWN)
  await visitor.login('alice')
  for (const name of NAMES) {
    tries.note(
      `a planted cookie ${name} is a session after the login`,
      await isIn(scene, `${name}=${KNOWN}`),
    )
  }
  if (!(await isIn(scene, visitor.cookie))) throw new Error('Alice is not signed in.')
}

/** Cookies have no port, so any program on the machine can set one for all ports. */
async function inBrowser(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const { canary, server } = target
  const cookies = NAMES.map((name) => `document.cookie='${name}=${KNOWN}; path=/'`)
  canary.pages.set('/plant', `<script>${cookies.join(';')}</script>planted`)
  const context = await (await target.browser()).newContext()
  const page = await context.newPage()
  await page.goto(`${canary.url}/plant`)
  await signIn(page, server.url, 'alice')
  const known = await isIn(scene, `redrive-loopback=${KNOWN}`)
  tries.note('a cookie that a page of another port planted is a session', known)
  const shown = await page.evaluate<string>('document.cookie')
  const now = (await context.cookies(server.url)).find(({ name }) => name === 'redrive-loopback')
  tries.note('a script can read the session', now === undefined || shown.includes(now.value))
  await context.close()
}

/** The attacker signs in up to the last step and makes another person finish it. */
async function begunByOthers(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const attacker = new Visitor(target.server.url)
  const back = await attacker.atProvider(await attacker.begin(), 'mallory')
  const victims = {
    'without a login': new Visitor(target.server.url),
    'during a login': new Visitor(target.server.url),
  }
  await victims['during a login'].begin()
  for (const [how, victim] of Object.entries(victims)) {
    await victim.visit(back)
    tries.note(`a victim ${how} becomes the attacker`, await isIn(scene, victim.cookie))
  }
  await attacker.visit(back)
  const again = new Visitor(target.server.url)
  for (const [name, value] of attacker.ours) again.ours.set(name, value)
  again.ours.delete('redrive-loopback')
  await again.visit(back)
  tries.note('the login callback is used twice', await isIn(scene, again.cookie))
}

async function old(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const { visitor, asking: session } = await target.visitor('alice')
  const before = visitor.cookie
  await visitor.login('alice')
  tries.note('the session from before a new login is still valid', await isIn(scene, before))
  const { asking: other, visitor: last } = await target.visitor('alice')
  const response = await session('POST', '/auth/logout', { headers: { cookie: last.cookie } })
  tries.note('the CSRF token of another session logs out', isOk(response))
  await other('POST', '/auth/logout')
  tries.note('a session is still valid after its logout', await isIn(scene, last.cookie))
}
