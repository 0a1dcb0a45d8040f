// For `redrive.config.ts`, so that projects with the CLI do not need a dependency on @redrive/server.
export { type ConfigInput, defineConfig } from '@redrive/server'
