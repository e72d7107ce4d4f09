/* net/selftest.h - does this kernel do what the sockets count on? Each call opens sockets of its own on
 * 127.0.0.1, really sends, and closes them again.
 *
 * Thread: any; each waits a second at most.
 */
#ifndef NET_SELFTEST_H
#define NET_SELFTEST_H

/** One UDP_SEGMENT message arrives as three datagrams of the right lengths.
 *  @return 0, -EBADMSG (it arrived otherwise), -ETIMEDOUT, or the errno of the call that failed */
int selftest_gso(void);

/** With UDP_GRO, such a message arrives in one piece that says where to cut it. @return likewise */
int selftest_gro(void);

/** One sendmmsg() and one recvmmsg() carry several datagrams. @return likewise */
int selftest_batches(void);

/** Two sockets share a port by SO_REUSEPORT, each flow stays with one of them, and both get some.
 *  @return likewise */
int selftest_reuseport(void);

#endif
