import { BROKERS } from './brokers.ts'
import { DATABASES } from './databases.ts'
import { HTTP } from './http.ts'
import type { Situations } from './situation.ts'

/** The class of each error that a package throws. The tests provoke them; `pnpm reference` writes the page from it. */
export const SITUATIONS: Situations = { ...HTTP, ...DATABASES, ...BROKERS }
