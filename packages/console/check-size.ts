/** Fails when the scripts of the first page are larger than users should wait for. Reads the build. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** 180 kB: on a connection of 1.6 Mbit/s the page can be used within a second. */
const MOST_BYTES = 180_000

const folder = fileURLToPath(new URL('../server/dist/console/', import.meta.url))
const page = readFileSync(`${folder}index.html`, 'utf8')
const scripts = [...page.matchAll(/(?:src|href)="\.\/([^"]+\.js)"/g)].map(([, path = '']) => path)
const bytes = scripts.reduce((sum, path) => sum + gzipSync(readFileSync(folder + path)).length, 0)
const isSmall = scripts.length > 0 && bytes <= MOST_BYTES
console.log(
  `${isSmall ? 'PASS' : 'SHORT'} console first load ${bytes} bytes (gzip) in ${scripts.length} scripts, goal at most ${MOST_BYTES}`,
)
process.exitCode = isSmall ? 0 : 1
