/** The parts of the server that the command line contains in its bundle. They load no other package. */
export { CONFIG_FILES } from './config/files.ts'
export { lookUp, notSet } from './config/placeholders.ts'
