// Builds the parts of PromQL expressions that several alerts share.
//
// Every expression keeps the label `namespace`, which pod discovery on Kubernetes adds to each series, so that a healthy installation
// does not hide another one. Without that label, all scraped processes count as one installation.
import { milliseconds } from '@bullpen/contract'

const INSTALLATION = 'namespace'

/** A duration in the notation that Prometheus and Bullpen share. */
export type Window = `${number}${'m' | 'h'}`

const by = (labels: readonly string[]): string => `by (${[INSTALLATION, ...labels].join(', ')})`

/** Joins two sides of a vector operation on the labels that {@link largest} and {@link sum} leave. */
export const on = (...labels: readonly string[]): string => `on (${[INSTALLATION, ...labels].join(', ')})`

/** The value of a gauge that every API process reports for the whole fleet. */
export const largest = (selector: string, ...labels: readonly string[]): string => `max ${by(labels)} (${selector})`

export const smallest = (selector: string, ...labels: readonly string[]): string => `min ${by(labels)} (${selector})`

export const sum = (selector: string, ...labels: readonly string[]): string => `sum ${by(labels)} (${selector})`

/** Whether the target was one of Bullpen's processes when it last responded. A target that is down does not have any other series. */
export const IS_OURS = 'on (job, instance) max by (job, instance) (max_over_time(bullpen_build_info[1h]))'

/** The rate of a counter, per second. */
export const rate = (selector: string, window: string, ...labels: readonly string[]): string =>
  sum(`rate(${selector}[${window}])`, ...labels)

/**
 * The processes that are older than the window and that Prometheus did not scrape before it, for example because Prometheus has just been
 * installed or was down.
 */
const foundLate = (window: Window): string =>
  `process_start_time_seconds < time() - ${milliseconds(window) / 1_000} unless process_start_time_seconds offset ${window}`

/**
 * How much a counter has grown within the window. Some series appear only when their first event is counted, and those of a new process
 * may have counted events before the first scrape. `increase` does not see these events, because it compares two samples. The whole value
 * of a series that did not exist before the window is therefore added, unless it may have existed without being scraped.
 */
export const growth = (selector: string, window: Window, ...labels: readonly string[]): string =>
  sum(
    `(${selector} unless ${selector} offset ${window} unless on (job, instance) (${foundLate(window)})) or increase(${selector}[${window}])`,
    ...labels,
  )
