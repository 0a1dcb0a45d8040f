import type { ReactNode } from 'react'

/** Lines of 1.5 px in a box of 16. */
// biome-ignore format: one row per icon
export const ICONS = {
  overview: <><path d="M2.5 8.5 5 8.5 6.5 4l3 8 1.5-3.5h2.5" /></>,
  groups: <><rect x="2.5" y="2.5" width="11" height="3" rx="1" /><rect x="2.5" y="7" width="8" height="2.6" rx="1" /><rect x="2.5" y="11" width="5" height="2.5" rx="1" /></>,
  messages: <><rect x="2" y="3.5" width="12" height="9" rx="1.5" /><path d="m2.5 4.5 5.5 4.5 5.5-4.5" /></>,
  replays: <><path d="M3 8a5 5 0 1 1 1.6 3.7" /><path d="M1.2 6.6 3 8.6l2-1.8" /></>,
  approvals: <><circle cx="8" cy="8" r="6" /><path d="m5.4 8.2 1.8 1.8 3.4-3.8" /></>,
  sources: <><ellipse cx="8" cy="4" rx="5" ry="2" /><path d="M3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2" /></>,
  audit: <><path d="M4 2.5h6l2.5 2.5v8.5H4z" /><path d="M6 7.5h4.5M6 10.3h4.5" /></>,
  settings: <><path d="M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6" /><circle cx="10" cy="4.5" r="1.5" /><circle cx="6" cy="11.5" r="1.5" /></>,
  search: <><circle cx="7" cy="7" r="4.2" /><path d="m10.2 10.2 3 3" /></>,
  pause: <><path d="M5.5 4v8M10.5 4v8" /></>,
  play: <><path d="M5 3.5v9l7.5-4.5z" /></>,
  stop: <><rect x="4" y="4" width="8" height="8" rx="1" /></>,
  more: <><circle cx="3.5" cy="8" r=".7" fill="currentColor" /><circle cx="8" cy="8" r=".7" fill="currentColor" /><circle cx="12.5" cy="8" r=".7" fill="currentColor" /></>,
  copy: <><rect x="5.5" y="5.5" width="8" height="8" rx="1.3" /><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" /></>,
  out: <><path d="M6.5 3.5h-3v9h9v-3M9.5 3h3.5v3.5M13 3 7.5 8.5" /></>,
  right: <><path d="m6 3.5 4.5 4.5L6 12.5" /></>,
  left: <><path d="M10 3.5 5.5 8l4.5 4.5" /></>,
  down: <><path d="M3.5 6 8 10.5 12.5 6" /></>,
  check: <><path d="m3.5 8.5 3 3 6-7" /></>,
  eye: <><path d="M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8z" /><circle cx="8" cy="8" r="1.8" /></>,
  bulb: <><path d="M2.5 8h8M7.5 4.5 11 8l-3.5 3.5M13.5 3v10" /></>,
  clock: <><circle cx="8" cy="8" r="5.7" /><path d="M8 4.8V8l2.2 1.5" /></>,
  lock: <><rect x="3.5" y="7" width="9" height="6.5" rx="1.3" /><path d="M5.5 7V5a2.5 2.5 0 0 1 5 0v2" /></>,
  user: <><circle cx="8" cy="5.5" r="2.7" /><path d="M2.8 13.5c.6-2.6 2.6-4 5.2-4s4.6 1.4 5.2 4" /></>,
  trash: <><path d="M3 4.500h10M6.5 4.500v-2h3v2M4.5 4.500l.5 9h6l.5-9" /></>,
  mute: <><path d="M4.5 6.500a3.5 3.5 0 0 1 7 0c0 3 1.3 4 1.3 4H3.200s1.3-1 1.3-4zM6.8 13h2.400M2.5 2.500l11 11" /></>,
  'class-transient': <><path d="M2 8c1.5-4 3-4 4.5-1s3 3 4.5 0S14 5 14 5" /></>,
  'class-schema': <><path d="M6 2.500c-2 0-1.5 2-1.5 3S4 8 2.5 8C4 8 4.5 9.5 4.5 10.500s-.5 3 1.5 3M10 2.500c2 0 1.5 2 1.5 3S12 8 13.5 8C12 8 11.5 9.5 11.5 10.500s.5 3-1.5 3" /></>,
  'class-business': <><rect x="2" y="5" width="12" height="8" rx="1.3" /><path d="M6 5V3.300h4V5M2 8.500h12" /></>,
  'class-integration': <><path d="M6 2.500v3M10 2.500v3M4 5.500h8v2.500a4 4 0 0 1-8 0zM8 12v2" /></>,
  'class-unknown': <><path d="M5.5 6a2.5 2.5 0 1 1 3.6 2.200C8.3 8.7 8 9.2 8 10M8 12.700v.1" /></>,
  rabbitmq: <><path d="M3 13.500v-11h2.800v4.200h2.400V2.500H11v4.200h2.500v6.800z" /></>,
  kafka: <><circle cx="5.5" cy="3.5" r="1.5" /><circle cx="5.5" cy="8" r="1.8" /><circle cx="5.5" cy="12.5" r="1.5" /><circle cx="11" cy="5.5" r="1.5" /><circle cx="11" cy="10.5" r="1.5" /><path d="M5.5 5v1.200M5.5 9.800V11M7 7.200l2.6-1.200M7 8.800l2.6 1.2" /></>,
  postgres: <><ellipse cx="8" cy="4" rx="5" ry="2" /><path d="M3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4" /></>,
  close: <><path d="m4 4 8 8m0-8-8 8" /></>,
  menu: <><path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" /></>,
  sun: <><circle cx="8" cy="8" r="3" /><path d="M8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1" /></>,
} as const satisfies Readonly<Record<string, ReactNode>>
export type IconName = keyof typeof ICONS

/** Filled shapes in a box of 12. Each status has its own shape, so that colour is never the only sign. */
// biome-ignore format: one row per shape
export const MARKS = {
  open: <><circle cx="6" cy="6" r="4.6" fill="none" stroke="currentColor" strokeWidth="1.8" /><circle cx="6" cy="6" r="1.7" fill="currentColor" /></>,
  run: <><circle cx="6" cy="6" r="5" fill="none" stroke="currentColor" strokeWidth="1.6" /><path d="M6 1a5 5 0 0 1 0 10z" fill="currentColor" /></>,
  done: <><circle cx="6" cy="6" r="6" fill="currentColor" /><path d="m3.4 6.2 1.8 1.8 3.5-3.9" fill="none" stroke="var(--surface)" strokeWidth="1.6" /></>,
  fail: <><path d="M3.6.5h4.800L11.5 3.600v4.800L8.4 11.500H3.600L.5 8.400V3.600z" fill="currentColor" /><path d="m4 4 4 4m0-4-4 4" stroke="var(--surface)" strokeWidth="1.6" /></>,
  unknown: <><path d="M6 0 12 6 6 12 0 6z" fill="currentColor" /><path d="M6 3.200v3.200M6 8v.9" stroke="var(--surface)" strokeWidth="1.6" /></>,
  pause: <><circle cx="6" cy="6" r="6" fill="currentColor" /><path d="M4.5 3.800v4.400M7.5 3.800v4.4" stroke="var(--surface)" strokeWidth="1.7" /></>,
  warn: <><path d="M6 .6 11.8 11H.2z" fill="currentColor" /><path d="M6 4.300v3.200M6 8.700v.9" stroke="var(--surface)" strokeWidth="1.4" /></>,
  wait: <><circle cx="6" cy="6" r="5" fill="none" stroke="currentColor" strokeWidth="1.6" strokeDasharray="2.6 1.9" /></>,
  skip: <><rect x="1" y="1" width="10" height="10" rx="2" fill="none" stroke="currentColor" strokeWidth="1.5" /><path d="M3.7 6h4.6" stroke="currentColor" strokeWidth="1.5" /></>,
  time: <><circle cx="6" cy="6" r="5" fill="none" stroke="currentColor" strokeWidth="1.5" /><path d="M6 3.200V6l1.8 1.2" fill="none" stroke="currentColor" strokeWidth="1.4" /></>,
  back: <><path d="M1 4.5 4.5 1v7z" fill="currentColor" /><path d="M4 4.500h3.500a3 3 0 0 1 0 6H5" fill="none" stroke="currentColor" strokeWidth="1.8" /></>,
  off: <><circle cx="6" cy="6" r="4.8" fill="none" stroke="currentColor" strokeWidth="1.5" /><path d="m2.6 9.4 6.8-6.8" stroke="currentColor" strokeWidth="1.5" /></>,
} as const satisfies Readonly<Record<string, ReactNode>>
export type MarkName = keyof typeof MARKS
