import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const ADDRESSES = 'packages/sinks/src/addresses.ts'
const SINKS_HTTP = 'packages/sinks/src/http.ts'

/** Requests of the server to internal addresses. */
export const OUTGOING: readonly Mutant[] = [
  weakened('ssrf', 'alerts are sent to any address', [
    ADDRESSES,
    '  return world.has(address) && !refusedRanges.has(address)\n',
    '  return world.has(address) || refusedRanges.has(address) || true\n',
  ]),
  weakened('ssrf', 'a literal IP address is not checked', [
    ADDRESSES,
    '    return isIP(host) === 0 || this.#allows(host)\n',
    '    return isIP(host) === 0 || host !== ""\n',
  ]),
  weakened('ssrf', 'one allowed address of a name is enough', [
    ADDRESSES,
    'const fit = listed(found).filter(({ address }) => isNamed || this.#allows(address))',
    `const all = listed(found)
      const fit = all.some(({ address }) => isNamed || this.#allows(address)) ? all.toReversed() : []`,
  ]),
  weakened('ssrf', 'redirects are followed', [
    SINKS_HTTP,
    '    const response = await this.request(request)\n',
    `    const response = await this.request(request)
    const { location } = response.headers
    if (location !== undefined) return this.expectSuccess({ ...request, url: new URL(location) })
`,
  ]),
  weakened('ssrf', 'a name is resolved and checked, then resolved again for the connection', [
    ADDRESSES,
    '      if (options.all === true) callback(null, fit)\n',
    `      if (fit.length > 0) return this.#resolve(host, options, callback)
      if (options.all === true) callback(null, fit)
`,
  ]),
]
