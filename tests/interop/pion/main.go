// Pion: role=publish|play url= stream= codec= video=PORT audio=PORT; the talk is that of client.mjs.
// Media are plain RTP on ports of 127.0.0.1, from and to gst_rtp.py. sizes=N: so many encodings are sent.
// offer=default: what is sent is one of the codecs that the offer lists, not the only one.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v3"
)

const (
	limit  = 45 * time.Second
	enough = 30 // packets of each kind
	// Between the ports of two sizes of the picture, as gst_rtp.py has it.
	sizeStep = 10
)

var (
	options = map[string]string{}
	codecs  = map[string]string{"vp8": webrtc.MimeTypeVP8, "h264": webrtc.MimeTypeH264, "vp9": webrtc.MimeTypeVP9}
	// What the decoder knows each kind by.
	plainType = map[string]byte{"video": 96, "audio": 97}
)

// The one codec of the track.
func parameters(kind, mime string) webrtc.RTPCodecParameters {
	if kind == "audio" {
		capability := webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1"}
		return webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: 111}
	}
	fmtp := map[string]string{
		webrtc.MimeTypeH264: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
		webrtc.MimeTypeVP9:  "profile-id=0",
	}[mime]
	feedback := []webrtc.RTCPFeedback{{Type: "ccm", Parameter: "fir"}, {Type: "nack"}, {Type: "nack", Parameter: "pli"}}
	capability := webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 90000, SDPFmtpLine: fmtp, RTCPFeedback: feedback}
	payloadType := map[string]webrtc.PayloadType{webrtc.MimeTypeH264: 125, webrtc.MimeTypeVP9: 98, webrtc.MimeTypeVP8: 96}[mime]
	return webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: payloadType}
}

type answer map[string]interface{}

type client struct {
	pc      *webrtc.PeerConnection
	session *url.URL
	tag     string
	counts  map[string]*int64
}

func say(facts answer, err error) bool {
	line := answer{"ok": err == nil}
	for key, value := range facts {
		line[key] = value
	}
	if err != nil {
		line["why"] = err.Error()
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
	return err == nil
}

func until(what string, condition func() bool) error {
	for end := time.Now().Add(limit); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not in %s: %s", limit, what)
		}
	}
	return nil
}

func request(method, to, contentType, body, match string) (*http.Response, string, error) {
	asked, err := http.NewRequest(method, to, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if contentType != "" {
		asked.Header.Set("Content-Type", contentType)
	}
	if match != "" {
		asked.Header.Set("If-Match", match)
	}
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, string(text), err
}

func (c *client) post(offer string) (string, error) {
	path := map[string]string{"publish": "whip", "play": "whep"}[options["role"]]
	endpoint := options["url"] + "/" + path + "/" + options["stream"]
	response, text, err := request("POST", endpoint, "application/sdp", offer, "")
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s %s", response.Status, text)
	}
	c.tag = response.Header.Get("ETag")
	c.session, err = response.Location()
	return text, err
}

// Packets that come to a port go out on a track.
func (c *client) carry(kind string, port int, track *webrtc.TrackLocalStaticRTP) error {
	socket, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	go func() {
		for buffer := make([]byte, 1500); ; {
			n, _, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			if _, err := track.Write(buffer[:n]); err == nil && c.pc.ConnectionState() == webrtc.PeerConnectionStateConnected {
				atomic.AddInt64(c.counts[kind], 1)
			}
		}
	}()
	return nil
}

// The encoder's packets, on tracks of one sender: one, or one for each size of the picture.
func (c *client) addTracks(kind, mime string) (*webrtc.RTPSender, error) {
	var sender *webrtc.RTPSender
	port, err := strconv.Atoi(options[kind])
	if err != nil {
		return nil, err
	}
	sizes, err := strconv.Atoi(options["sizes"])
	if err != nil {
		return nil, err
	}
	for i := 0; i == 0 || (kind == "video" && i < sizes); i++ {
		var with []func(*webrtc.TrackLocalStaticRTP)
		if kind == "video" && sizes > 1 {
			with = append(with, webrtc.WithRTPStreamID(fmt.Sprintf("size%d", i)))
		}
		track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: mime}, kind, "interop", with...)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			sender, err = c.pc.AddTrack(track)
		} else {
			err = sender.AddEncoding(track)
		}
		if err != nil {
			return nil, err
		}
		if err := c.carry(kind, port+sizeStep*i, track); err != nil {
			return nil, err
		}
	}
	return sender, nil
}

func (c *client) send(kind, mime string) error {
	sender, err := c.addTracks(kind, mime)
	if err != nil {
		return err
	}
	for _, transceiver := range c.pc.GetTransceivers() {
		if transceiver.Sender() != sender || options["offer"] == "default" {
			continue
		}
		if err := transceiver.SetCodecPreferences([]webrtc.RTPCodecParameters{parameters(kind, mime)}); err != nil {
			return err
		}
	}
	go func() { // interceptors want RTCP to be read
		for buffer := make([]byte, 1500); ; {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	return nil
}

// Packets of a track go to the decoder.
func (c *client) onTrack(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
	kind := track.Kind().String()
	out, err := net.Dial("udp4", "127.0.0.1:"+options[kind])
	if err != nil {
		return
	}
	if kind == "video" {
		_ = c.pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}})
	}
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		packet.PayloadType = plainType[kind]
		packet.Extension, packet.Extensions = false, nil
		bytes, err := packet.Marshal()
		if err != nil {
			return
		}
		if _, err := out.Write(bytes); err == nil {
			atomic.AddInt64(c.counts[kind], 1)
		}
	}
}

func (c *client) prepare() error {
	if options["role"] == "publish" {
		if err := c.send("audio", webrtc.MimeTypeOpus); err != nil {
			return err
		}
		return c.send("video", codecs[options["codec"]])
	}
	c.pc.OnTrack(c.onTrack)
	only := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
		if _, err := c.pc.AddTransceiverFromKind(kind, only); err != nil {
			return err
		}
	}
	return nil
}

// A complete local offer, all candidates in it.
func (c *client) offer(more *webrtc.OfferOptions) (string, error) {
	gathered := webrtc.GatheringCompletePromise(c.pc)
	offer, err := c.pc.CreateOffer(more)
	if err != nil {
		return "", err
	}
	if err := c.pc.SetLocalDescription(offer); err != nil {
		return "", err
	}
	<-gathered
	return c.pc.LocalDescription().SDP, nil
}

func (c *client) begin() (answer, error) {
	var err error
	if c.pc, err = webrtc.NewPeerConnection(webrtc.Configuration{}); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	offer, err := c.offer(nil)
	if err != nil {
		return nil, err
	}
	text, err := c.post(offer)
	if err != nil {
		return nil, err
	}
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: text}); err != nil {
		return nil, fmt.Errorf("the answer is refused: %w", err)
	}
	if err := until("connected", func() bool {
		return c.pc.ConnectionState() == webrtc.PeerConnectionStateConnected
	}); err != nil {
		return nil, err
	}
	facts := answer{"version": options["version"], "offer": offer}
	return facts, c.flows()
}

// More packets of both kinds.
func (c *client) flows() error {
	audio, video := atomic.LoadInt64(c.counts["audio"]), atomic.LoadInt64(c.counts["video"])
	return until("packets of both kinds", func() bool {
		return atomic.LoadInt64(c.counts["audio"]) >= audio+enough && atomic.LoadInt64(c.counts["video"]) >= video+enough
	})
}

var credentials = regexp.MustCompile(`(?m)^a=ice-(ufrag|pwd):.*$`)

// ICE restart: the new credentials and candidates by PATCH, the relay's out of what it answers.
func (c *client) restart() (answer, error) {
	offer, err := c.offer(&webrtc.OfferOptions{ICERestart: true})
	if err != nil {
		return nil, err
	}
	var fragment bytes.Buffer
	for _, line := range strings.Split(offer, "\r\n") {
		isFirst := !strings.Contains(fragment.String(), "m=")
		if strings.HasPrefix(line, "m=") && !isFirst {
			break
		}
		if regexp.MustCompile(`^(m=|a=(ice-ufrag|ice-pwd|mid|candidate|end-of-candidates))`).MatchString(line) {
			fragment.WriteString(line + "\r\n")
		}
	}
	response, text, err := request("PATCH", c.session.String(), "application/trickle-ice-sdpfrag", fragment.String(), "*")
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s, asked with %s", response.Status, text, fragment.String())
	}
	before := c.pc.RemoteDescription().SDP
	fresh := map[string]string{}
	for _, line := range credentials.FindAllString(text, -1) {
		line = strings.TrimSpace(line)
		fresh[strings.SplitN(line, ":", 2)[0]] = line
	}
	if fresh["a=ice-ufrag"] == "" || strings.Contains(before, fresh["a=ice-ufrag"]) {
		return nil, errors.New("no new credentials in " + text)
	}
	after := credentials.ReplaceAllStringFunc(before, func(line string) string {
		return fresh[strings.SplitN(line, ":", 2)[0]] + strings.Repeat("\r", strings.Count(line, "\r"))
	})
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: after}); err != nil {
		return nil, err
	}
	if err := until("connected again", func() bool {
		return c.pc.ConnectionState() == webrtc.PeerConnectionStateConnected
	}); err != nil {
		return nil, err
	}
	return nil, c.flows()
}

func (c *client) end() (answer, error) {
	response, text, err := request("DELETE", c.session.String(), "", "", "")
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", response.Status, text)
	}
	_ = c.pc.Close()
	return nil, err
}

func main() {
	for _, word := range os.Args[1:] {
		if pair := strings.SplitN(word, "=", 2); len(pair) == 2 {
			options[pair[0]] = pair[1]
		}
	}
	c := &client{counts: map[string]*int64{"audio": new(int64), "video": new(int64)}}
	if !say(c.begin()) {
		os.Exit(1)
	}
	commands := map[string]func() (answer, error){
		"more": func() (answer, error) { return nil, c.flows() }, "restart": c.restart, "end": c.end,
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, isKnown := commands[lines.Text()]
		if !isKnown {
			say(nil, errors.New("cannot "+lines.Text()))
			continue
		}
		isGood := say(command())
		if lines.Text() == "end" && isGood {
			os.Exit(0)
		}
	}
}
