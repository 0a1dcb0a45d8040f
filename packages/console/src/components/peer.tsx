import { peerText, shorten } from '../words/peer.ts'
import './peer.css'

export interface PeerProps {
  readonly text: string
  /** Default: 2,000 characters. More would slow the page down. */
  readonly most?: number
}

/** Text that a producer or consumer wrote. Hidden characters are visible, and its direction does not leave it. */
export const Peer = ({ text, most = 2_000 }: PeerProps) => (
  <bdi className="peer">{peerText(shorten(text, most))}</bdi>
)
