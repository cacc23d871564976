// Divides a queue on the board into tabs, one for each status of its tasks.
import type { TaskStatus } from '@bullpen/contract'

/**
 * The tabs in the order of the board, with the status of the tasks in each. The pages know only these names, which are those of
 * BullMQ's sets, so the statuses that BullMQ does not have take the names that no task needs, under other labels (board-texts.ts). Bull
 * Board offers the buttons that retry and delete all tasks only on the tab `failed`, so the dead tasks have this name.
 */
export const TABS = {
  failed: 'dead',
  active: 'active',
  waiting: 'waiting',
  prioritized: 'retrying',
  delayed: 'scheduled',
  completed: 'completed',
  paused: 'cancelled',
  'waiting-children': 'expired',
} as const satisfies Readonly<Record<string, TaskStatus>>

export type Tab = keyof typeof TABS

export const TAB_NAMES = Object.keys(TABS) as readonly Tab[]

export function isTab(name: string): name is Tab {
  return Object.hasOwn(TABS, name)
}
