export {
  type Argument,
  type IoredisClient,
  isByteClient,
  isClient,
  type NodeRedisClient,
  type RedisClient,
  type ScriptInput,
} from './client.ts'
export {
  isReply,
  type Script,
  type ScriptRunner,
  type ScriptRunnerOptions,
  script,
  scriptRunner,
} from './script.ts'
