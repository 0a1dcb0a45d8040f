/** A browser without a window. It keeps cookies and follows redirects. */
export class Visitor {
  readonly #serverUrl: string
  readonly ours: Map<string, string> = new Map<string, string>()
  readonly #theirs = new Map<string, string>()

  constructor(serverUrl: string) {
    this.#serverUrl = serverUrl
  }

  /** Does a complete login and returns the server's response to the callback. */
  async login(who: string): Promise<Response> {
    return this.visit(await this.atProvider(await this.begin(), who))
  }

  /** Starts a login and returns the address at the provider. */
  async begin(): Promise<string> {
    const answer = await this.visit(`${this.#serverUrl}/auth/login`)
    const location = answer.headers.get('location')
    if (location === null)
      throw new Error(`The login did not start: ${answer.status} ${await answer.text()}`)
    return location
  }

  /** Signs in at the provider and returns the callback address. */
  async atProvider(address: string, who: string): Promise<string> {
    let next: { url: string; form?: URLSearchParams } = { url: address }
    // 20 steps: twice as many as a login with consent has.
    for (let step = 0; step < 20; step++) {
      const answer = await ask(next, this.#theirs)
      const location = answer.headers.get('location')
      const text = await answer.text()
      next = location === null ? filled(text, who) : { url: new URL(location, next.url).href }
      if (next.url.startsWith(this.#serverUrl)) return next.url
    }
    throw new Error('The provider did not finish the login within 20 steps.')
  }

  /** Requests an address of the server. */
  visit(url: string): Promise<Response> {
    return ask({ url }, this.ours)
  }

  get cookie(): string {
    return cookiesOf(this.ours)
  }
}

const cookiesOf = (jar: ReadonlyMap<string, string>) =>
  [...jar].map(([name, value]) => `${name}=${value}`).join('; ')

async function ask(
  { url, form }: { url: string; form?: URLSearchParams },
  jar: Map<string, string>,
): Promise<Response> {
  const answer = await fetch(url, {
    redirect: 'manual',
    headers: { cookie: cookiesOf(jar) },
    ...(form === undefined ? {} : { method: 'POST', body: form }),
  })
  for (const line of answer.headers.getSetCookie()) {
    const [pair = ''] = line.split(';')
    const [name = '', value = ''] = pair.split(/=(.*)/s)
    if (value === '') jar.delete(name)
    else jar.set(name, value)
  }
  return answer
}

function filled(page: string, login: string): { url: string; form: URLSearchParams } {
  const url = /<form[^>]* action="([^"]+)"/.exec(page)?.[1]
  const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
  if (url === undefined || prompt === undefined) throw new Error(`There is no form in ${page}`)
  return { url, form: new URLSearchParams({ prompt, login, password: 'any' }) }
}
