// For `redrive.config.ts`: whoever has the command line need not install the server by its own name.
export { type ConfigInput, defineConfig } from '@redrive/server'
