export { RedriveContext } from './context.ts'
export { RedriveExceptionFilter } from './filter.ts'
export { type EventPacket, RedriveServer, type RedriveServerOptions } from './server.ts'
