import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** The console is a part of the server package. The page of components is only for tests and for this repository. */
const BUILDS = {
  console: { outDir: at('../server/dist/console'), page: at('index.html') },
  components: { outDir: at('.tsbuild/components'), page: at('components.html') },
} as const

/** The modules of Node that the runtime and the memory transport import. */
const NODE_MODULES = /^node:(async_hooks|crypto|diagnostics_channel|perf_hooks)$/

export default defineConfig(({ mode }) => {
  const { outDir, page } = mode === 'components' ? BUILDS.components : BUILDS.console
  return {
    root: at('.'),
    // Relative addresses, because the server can be mounted under a path. The server replaces them in the page.
    base: './',
    resolve: {
      conditions: ['@redrive/source', 'module', 'browser', 'development|production'],
      // The worker of the simulator runs the runtime, which is made for Node.
      alias: [{ find: NODE_MODULES, replacement: at('src/simulation/node-modules.ts') }],
    },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      // The content security policy forbids data: addresses except for images.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // Modules run in the order of their imports also across files: `no-eval.ts` must be the first.
      rolldownOptions: { input: page, output: { strictExecutionOrder: true } },
    },
  }
})
