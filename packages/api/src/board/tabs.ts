// Divides a queue on the board into tabs, one for each status of its tasks.
import type { TaskStatus } from '@bullpen/contract'

/**
 * The tabs in the order of the board, with the status of the tasks in each. Bull Board offers the buttons that retry and delete
 * tasks only on the tab `failed`. This tab therefore shows the dead tasks, under another label (board-texts.ts).
 */
export const TABS = {
  failed: 'dead',
  active: 'active',
  waiting: 'waiting',
  retrying: 'retrying',
  scheduled: 'scheduled',
  completed: 'completed',
  cancelled: 'cancelled',
  expired: 'expired',
  prioritized: 'waiting',
  'waiting-children': 'waiting',
} as const satisfies Readonly<Record<string, TaskStatus>>

export type Tab = keyof typeof TABS

export const TAB_NAMES = Object.keys(TABS) as readonly Tab[]

/** The tabs whose tasks are only a part of one of BullMQ's sets, so that BullMQ can neither count nor list them. */
const PART_TABS = ['scheduled', 'retrying', 'failed', 'cancelled', 'expired'] as const

export type PartTab = (typeof PART_TABS)[number]

export function isPartTab(tab: unknown): tab is PartTab {
  return PART_TABS.some((name) => name === tab)
}

/** Returns the tab that shows the tasks with this status, or undefined if several tabs do. */
export function tabOf(status: TaskStatus): Tab | undefined {
  const [tab, another] = TAB_NAMES.filter((name) => TABS[name] === status)
  return another === undefined ? tab : undefined
}
