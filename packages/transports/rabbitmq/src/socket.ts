import type { Socket } from 'node:net'
import type { ChannelModel } from 'amqplib'

/** The client library has no name for it in its types. */
export function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { readonly stream: Socket }).stream
}

/**
 * The client library writes every frame by itself, and a system call costs more than the frame. What is
 * written in one turn of the event loop leaves together.
 */
export function gatherWrites(model: ChannelModel): ChannelModel {
  const socket = socketOf(model)
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  let isGathering = false
  const release = () => {
    isGathering = false
    socket.uncork()
  }
  socket.write = (...args: unknown[]) => {
    if (!isGathering) {
      isGathering = true
      socket.cork()
      process.nextTick(release)
    }
    return write(...args)
  }
  return model
}
