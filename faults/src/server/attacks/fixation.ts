import type { Drill } from '../../drill.ts'
import { asking, isOk } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { signIn } from './sign-in.ts'
import { Visitor } from './visitor.ts'

/** 43 characters, as secrets of sessions are. */
const KNOWN = 'A'.repeat(43)

/** A session belongs to the browser that signed in, and to nobody who knew something before. */
export const FIXATION: Drill = attack(
  'fixation',
  'a session that the attacker knows, or began, becomes that of somebody else',
  async (scene) => {
    await planted(scene)
    await inBrowser(scene)
    await begunByOthers(scene)
    await old(scene)
  },
)

const isIn = async ({ target }: Scene, cookie: string) =>
  isOk(await asking(target.server.url, { cookie })('GET', '/api/v1/me'))

/** The names that the server uses, and those that it would use elsewhere. */
const NAMES = ['redrive-loopback', '__Host-redrive', 'redrive']

async function planted(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const visitor = new Visitor(target.server.url)
  for (const name of NAMES) visitor.ours.set(name, KNOWN)
  await visitor.login('alice')
  for (const name of NAMES) {
    tries.note(
      `a planted ${name} is a session after the login`,
      await isIn(scene, `${name}=${KNOWN}`),
    )
  }
  if (!(await isIn(scene, visitor.cookie))) throw new Error('Alice is not in.')
}

/** Cookies have no port: any program on the machine can set one for all of them. */
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

/** The attacker signs in up to the last step, and lets somebody else take it. */
async function begunByOthers(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const attacker = new Visitor(target.server.url)
  const back = await attacker.atProvider(await attacker.begin(), 'mallory')
  const victims = {
    'with nothing': new Visitor(target.server.url),
    'at a login': new Visitor(target.server.url),
  }
  await victims['at a login'].begin()
  for (const [how, victim] of Object.entries(victims)) {
    await victim.visit(back)
    tries.note(`a victim ${how} becomes the attacker`, await isIn(scene, victim.cookie))
  }
  await attacker.visit(back)
  const again = new Visitor(target.server.url)
  for (const [name, value] of attacker.ours) again.ours.set(name, value)
  again.ours.delete('redrive-loopback')
  await again.visit(back)
  tries.note('the way back is taken twice', await isIn(scene, again.cookie))
}

async function old(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const { visitor, asking: session } = await target.visitor('alice')
  const before = visitor.cookie
  await visitor.login('alice')
  tries.note('the session before a new login is still one', await isIn(scene, before))
  const { asking: other, visitor: last } = await target.visitor('alice')
  const told = await session('POST', '/auth/logout', { headers: { cookie: last.cookie } })
  tries.note('the proof of another session logs out', isOk(told))
  await other('POST', '/auth/logout')
  tries.note('a session after its logout is still one', await isIn(scene, last.cookie))
}
