import type { Socket } from 'node:net'
import type { ChannelModel } from 'amqplib'

/** Returns the socket of a connection; the types of the client library do not declare it. */
export function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { readonly stream: Socket }).stream
}

/** Returns the maximum size of a frame, which client and broker agreed on; the types do not declare it. */
export function frameMaxOf(model: ChannelModel | undefined): number {
  const { frameMax } = (model?.connection ?? {}) as { readonly frameMax?: number }
  return frameMax ?? Number.POSITIVE_INFINITY
}

/**
 * Combines the frames written in one turn of the event loop into one write. The client library writes
 * each frame separately, and a system call costs more than the frame.
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
