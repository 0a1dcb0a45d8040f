/**
 * Values that addresses may have. They are here and not next to the screens, because the router is loaded first and should
 * load nothing else.
 */

/** How far back the list of messages reaches when the filter has no bound. */
export const MESSAGE_RANGES = ['24h', '7d', '30d', '90d'] as const
export type MessageRange = (typeof MESSAGE_RANGES)[number]

/** How the body is shown after it is revealed. */
export const BODY_VIEWS = ['pretty', 'raw', 'hex'] as const
export type BodyView = (typeof BODY_VIEWS)[number]

/** The messages of a run by outcome. */
export const ITEM_TABS = ['refailed', 'unknown', 'skipped', 'resolved', 'all'] as const
export type ItemTab = (typeof ITEM_TABS)[number]

/** The views of the list of runs. The first one is the default. */
export const RUN_VIEWS = ['all', 'active', 'planned', 'unconfirmed', 'mine'] as const
export type RunView = (typeof RUN_VIEWS)[number]

/** The outages of the simulator. */
export const OUTAGES = ['60s', '5m', '15m'] as const
export const OUTAGE_KINDS = ['refuse', 'brown-out'] as const
/** Names of the textbook policies of the simulator. */
export const COMPARED = ['A', 'B', 'C', 'D', 'E', 'none'] as const
