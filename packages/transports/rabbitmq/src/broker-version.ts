import type { ChannelModel } from 'amqplib'

/** Returns whether the broker is older than this version. */
export function isBefore({ connection }: ChannelModel, major: number, minor: number): boolean {
  const [itsMajor = 0, itsMinor = 0] = connection.serverProperties.version.split('.').map(Number)
  return itsMajor < major || (itsMajor === major && itsMinor < minor)
}
